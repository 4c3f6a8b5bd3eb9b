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

// pace keeps the writes of each object an interval apart. An object is throttled while it is
// written and for the interval after that. The sync that wrote it is requeued for the end of
// the interval, and a sync that failed is retried. It may be used by several goroutines.
type pace struct {
	interval time.Duration
	clock    clock.PassiveClock

	mutex   sync.Mutex
	objects map[cache.ObjectName]times
}

// times are those of one object.
type times struct {
	uid     types.UID
	writing bool
	// next is when it may be written again, zero before it was first written.
	next time.Time
	// graceEnds is until when the Pods are given time to follow the object's generation.
	graceEnds  time.Time
	generation int64
}

// wait returns how long the object is not to be written again.
func (p *pace) wait(key cache.ObjectName, uid types.UID) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.of(key, uid).next.Sub(p.clock.Now())
}

// begin begins a write. What it changes may be cached before it is answered. Without an
// interval the object is not throttled, since nothing would requeue it.
func (p *pace) begin(key cache.ObjectName, uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.of(key, uid)
	t.writing = p.interval > 0
	p.objects[key] = t
}

// end ends a write. If it was made, the interval begins.
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

// throttled returns whether an object is being written, or the interval after that is not yet
// over. An object of the same name that was created since is throttled with it.
func (p *pace) throttled(key cache.ObjectName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.objects[key]
	return t.writing || t.next.After(p.clock.Now())
}

// gracePeriod returns how long the Pods of an object are still given to follow its
// generation: an interval from the first call for that generation.
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

// of returns the times of an object, which are not those of an earlier one of its name.
func (p *pace) of(key cache.ObjectName, uid types.UID) times {
	if t, ok := p.objects[key]; ok && t.uid == uid {
		return t
	}
	return times{uid: uid}
}
