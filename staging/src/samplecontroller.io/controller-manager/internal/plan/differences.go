// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	"samplecontroller.io/controller-manager/internal/writes"
)

// Lasting is how long a shadow must want a write before it counts as a difference: the leader needs time for its own,
// and the caches to see it. The delay of [Delayed] is added.
const Lasting = 10 * time.Second

// Difference is a write that a shadow still wants after [Lasting], so that the leader does not make it.
type Difference struct {
	Change
	// Since is when the shadow first wanted the write.
	Since time.Time
}

// syncID identifies the object of a queue.
type syncID struct{ controller, queue, key string }

// writeID identifies a write.
type writeID struct{ verb, resource, namespace, name string }

func (c Change) id() writeID { return writeID{c.Verb, c.Resource, c.Namespace, c.Name} }

// wanted is what a shadow wants to write.
type wanted struct {
	Difference
	lasts bool
}

// series has the labels of the gauge.
type series struct{ controller, resource string }

// differences are the writes that a shadow wants.
type differences struct {
	mutex  sync.Mutex
	bySync map[syncID]map[writeID]*wanted
	counts map[series]int // of those that last; has all series
}

func newDifferences() *differences {
	return &differences{bySync: map[syncID]map[writeID]*wanted{}, counts: map[series]int{}}
}

// update sets the writes that a sync wants, beside those of earlier ones that are kept. It returns after how long to
// call the sync again; 0 means not because of them.
func (d *differences) update(id syncID, changes []Change, isKept func(Change) bool, now time.Time) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	before := d.bySync[id]
	next := maps.Clone(before)
	if next == nil {
		next = map[writeID]*wanted{}
	}
	maps.DeleteFunc(next, func(_ writeID, w *wanted) bool { return !isKept(w.Change) })
	again := Lasting
	for _, c := range changes {
		c.Before, c.After = "", ""
		w := before[c.id()]
		if w == nil {
			w = &wanted{Difference: Difference{Since: now}}
		}
		w.Change, next[c.id()] = c, w
		switch left := c.delay + Lasting - now.Sub(w.Since); {
		case w.lasts:
		case left > 0:
			again = min(again, left)
		default:
			w.lasts = true
			d.counts[series{c.Controller, c.Resource}]++
		}
	}
	for write, w := range before {
		if next[write] == nil && w.lasts {
			d.counts[series{w.Controller, w.Resource}]--
		}
	}
	delete(d.bySync, id)
	if len(next) == 0 {
		return 0
	}
	d.bySync[id] = next
	return again
}

// Forget forgets what the syncs of a queue want, because its loop does not see while it does not work which objects are
// deleted.
func (r *Recorder) Forget(controller, queue string) {
	if !r.IsShadow() {
		return
	}
	d := r.shadow
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for id, writes := range d.bySync {
		if id.controller != controller || id.queue != queue {
			continue
		}
		for _, w := range writes {
			if w.lasts {
				d.counts[series{w.Controller, w.Resource}]--
			}
		}
		delete(d.bySync, id)
	}
}

// Differences returns the total number of differences, and the oldest ones.
func (r *Recorder) Differences(limit int) (total int, oldest []Difference) {
	if !r.IsShadow() {
		return 0, nil
	}
	d := r.shadow
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, writes := range d.bySync {
		for _, w := range writes {
			if w.lasts {
				oldest = append(oldest, w.Difference)
			}
		}
	}
	slices.SortFunc(oldest, func(a, b Difference) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.String(), b.String()))
	})
	return len(oldest), oldest[:min(limit, len(oldest))]
}

// Prepare creates the series of a controller at zero.
func (r *Recorder) Prepare(controller string, allowed ...writes.Write) {
	if !r.IsShadow() {
		return
	}
	r.shadow.mutex.Lock()
	defer r.shadow.mutex.Unlock()
	for _, w := range allowed {
		r.shadow.counts[series{controller, w.Resource}] += 0
	}
}

// Metrics has the gauge of the differences. Create it with [NewMetrics].
type Metrics struct {
	metrics.BaseStableCollector
	desc *metrics.Desc

	mutex    sync.Mutex
	recorder *Recorder
}

// NewMetrics creates the gauge <namespace>_shadow_differences and registers it with register.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	m := &Metrics{desc: metrics.NewDesc(namespace+"_shadow_differences",
		"Number of writes that this shadow still wants 10 s after it first did, so that the leader does not make them. "+
			"The interval by which the leader may delay a status is added. Only a process with --shadow has it.",
		[]string{"controller", "resource"}, nil, metrics.ALPHA, "")}
	register(m)
	return m
}

// Watch makes the gauge that of a recorder.
func (m *Metrics) Watch(r *Recorder) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.recorder = r
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- m.desc }

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	r := m.recorder
	m.mutex.Unlock()
	if !r.IsShadow() {
		return
	}
	r.shadow.mutex.Lock()
	defer r.shadow.mutex.Unlock()
	for s, n := range r.shadow.counts {
		all <- metrics.NewLazyConstMetric(m.desc, metrics.GaugeValue, float64(n), s.controller, s.resource)
	}
}
