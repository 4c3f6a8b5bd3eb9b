// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// pace keeps the writes of each object an interval apart. An object is throttled while it
// is written and for the interval after that. The sync that wrote it is requeued for the
// end of the interval, and a failed sync is retried. It is safe for concurrent use.
type pace struct {
	interval time.Duration
	clock    clock.PassiveClock

	mutex   sync.Mutex
	objects map[cache.ObjectName]times
}

// times has the times of one object.
type times struct {
	uid     types.UID
	writing bool
	// next is when it may be written again, zero before the first write.
	next time.Time
	// graceEnds is when the grace period of the object's generation ends.
	graceEnds  time.Time
	generation int64
}

// wait returns how long the object must not be written.
func (p *pace) wait(key cache.ObjectName, uid types.UID) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.of(key, uid).next.Sub(p.clock.Now())
}

// begin begins a write. The cache may have the change before the write returns. With an
// interval of 0 the object is not throttled, since nothing would requeue it.
func (p *pace) begin(key cache.ObjectName, uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.of(key, uid)
	t.writing = p.interval > 0
	p.objects[key] = t
}

// end ends a write. The interval begins if the write succeeded.
func (p *pace) end(key cache.ObjectName, uid types.UID, made bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.of(key, uid)
	t.writing = false
	if made {
		t.next = p.clock.Now().Add(p.interval)
	}
	p.objects[key] = t
}

// throttled reports whether an object is being written or the interval after its last write
// is not over. A re-created object of the same name is throttled, too.
func (p *pace) throttled(key cache.ObjectName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.objects[key]
	return t.writing || t.next.After(p.clock.Now())
}

// gracePeriod returns the remaining grace period in which the Pods may change after a
// change of the object's generation. It is one interval from the first call for that
// generation.
func (p *pace) gracePeriod(key cache.ObjectName, uid types.UID, generation int64) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.of(key, uid)
	if t.graceEnds.IsZero() || t.generation != generation {
		t.graceEnds, t.generation = p.clock.Now().Add(p.interval), generation
		p.objects[key] = t
	}
	return t.graceEnds.Sub(p.clock.Now())
}

// forget forgets an object that is gone.
func (p *pace) forget(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.objects, key)
}

// of returns the times of an object, but not those of an earlier object of the same name.
func (p *pace) of(key cache.ObjectName, uid types.UID) times {
	if t, ok := p.objects[key]; ok && t.uid == uid {
		return t
	}
	return times{uid: uid}
}
