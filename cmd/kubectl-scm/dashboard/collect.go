// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// Options configure a dashboard.
type Options struct {
	// Namespace limits the objects to those of one namespace, unless it is empty.
	Namespace string
	// Timeout is how long a request may take.
	Timeout time.Duration
}

// Dashboard reads a [Source] and serves pages.
type Dashboard struct {
	options Options
	source  Source
	opened  time.Time
	history history
	kinds   []*objects
	replica connection

	mutex     sync.Mutex
	lead      reading[cluster.Lead]
	handovers reading[[]cluster.Handover]
	pods      reading[[]cluster.Pod]
	report    reading[debug.Report]
	observed  []cluster.Handover // since the dashboard was opened
	renewed   time.Time          // when a renewal of the Lease was last seen, zero if none was
}

// New returns a dashboard. It reads nothing until [Dashboard.Run].
func New(source Source, options Options) *Dashboard {
	d := &Dashboard{options: options, source: source, opened: time.Now()}
	d.lead.Interval, d.handovers.Interval, d.pods.Interval = 2*time.Second, 10*time.Second, 10*time.Second
	d.report.Interval = reportInterval
	for _, kind := range cluster.Kinds {
		d.kinds = append(d.kinds, newObjects(kind))
	}
	return d
}

// Run reads until the context ends, and returns when all of its goroutines have.
func (d *Dashboard) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { poll(ctx, d, &d.lead, d.source.Lead, d.observe) })
	running.Go(func() { poll(ctx, d, &d.handovers, d.source.Handovers, nil) })
	running.Go(func() { poll(ctx, d, &d.pods, d.source.Pods, nil) })
	running.Go(func() { d.follow(ctx) })
	for _, o := range d.kinds {
		running.Go(func() {
			w := o.watcher()
			if err := d.source.Watch(ctx, o.kind, d.options.Namespace, w); err != nil {
				w.Failed(err)
			}
		})
	}
}

// poll reads a source at the interval of its reading. seen is called with each value that was read, if it is not nil.
func poll[T any](ctx context.Context, d *Dashboard, into *reading[T], read func(context.Context) (T, error),
	seen func(before, now T)) {
	for {
		value, err := bounded(ctx, d.options.Timeout, read)
		d.mutex.Lock()
		if before := into.Value; err == nil {
			into.succeeded(value, time.Now())
			if seen != nil {
				seen(before, value)
			}
		} else if ctx.Err() == nil {
			into.Err = err
		}
		d.mutex.Unlock()
		if !wait(ctx, into.Interval) {
			return
		}
	}
}

// bounded reads with a timeout, and says so if it passes.
func bounded[T any](ctx context.Context, timeout time.Duration, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	value, err := read(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return value, err
}

// wait waits, and returns false if the context ends.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// observe remembers a handover and when the Lease was renewed. The Events of the Lease may be unreadable.
func (d *Dashboard) observe(before, now cluster.Lead) {
	if !before.Renewed.IsZero() && !now.Renewed.Equal(before.Renewed) {
		d.renewed = time.Now()
	}
	if before.Holder == now.Holder {
		return
	}
	if before.Holder != "" {
		d.observed = append(d.observed, cluster.Handover{Time: time.Now(), Process: before.Holder, What: stopped})
	}
	if now.Holder != "" {
		d.observed = append(d.observed, cluster.Handover{Time: now.Since, Process: now.Holder, What: became})
	}
}

// snapshot is what is known at one time.
type snapshot struct {
	Now, Opened time.Time
	Namespace   string
	Lead        reading[cluster.Lead]
	Handovers   reading[[]cluster.Handover]
	Pods        reading[[]cluster.Pod]
	Report      reading[debug.Report]
	Observed    []cluster.Handover

	renewed time.Time
	history *history
	kinds   []*objects
}

func (d *Dashboard) snapshot() *snapshot {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return &snapshot{Now: time.Now(), Opened: d.opened, Namespace: d.options.Namespace,
		Lead: d.lead, Handovers: d.handovers, Pods: d.pods, Report: d.report,
		Observed: d.observed, renewed: d.renewed, history: &d.history, kinds: d.kinds}
}

// expired returns whether the Lease has expired. Its times are by the clock of the leader, so a renewal that was seen
// counts more.
func (s *snapshot) expired() bool {
	return s.Lead.Value.Expired(s.Now) && s.Now.Sub(s.renewed) > s.Lead.Value.Duration
}
