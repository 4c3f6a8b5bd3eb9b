// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// statusDelay is how long a status waits that reports only progress. Often the object is ready
// by then, and needs no such status. And users wait for the Deployments of other objects, which
// are written first.
const statusDelay = time.Second

// pace remembers the objects whose statuses wait, and since when. It may be used by several
// goroutines.
type pace struct {
	mutex sync.Mutex
	since map[cache.ObjectName]time.Time
}

// remaining returns how much longer the object's status waits.
func (p *pace) remaining(key cache.ObjectName, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	since, ok := p.since[key]
	if !ok {
		if p.since == nil {
			p.since = map[cache.ObjectName]time.Time{}
		}
		since, p.since[key] = now, now
	}
	return statusDelay - now.Sub(since)
}

// waits tells whether the object's status waits.
func (p *pace) waits(key cache.ObjectName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, ok := p.since[key]
	return ok
}

// forget forgets an object whose status is written, or need not be.
func (p *pace) forget(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.since, key)
}

// mayWait tells whether the wanted status may wait: it reports only progress, and the current
// one does not claim that the present generation is ready or stalled.
func mayWait(current, wanted Status) bool {
	return !wanted.settled() && !(current.settled() && current.ObservedGeneration == wanted.ObservedGeneration)
}

// settled tells whether the status is Ready or Stalled.
func (s Status) settled() bool {
	return meta.IsStatusConditionTrue(s.Conditions, workloadv1alpha1.ConditionReady) ||
		meta.IsStatusConditionTrue(s.Conditions, workloadv1alpha1.ConditionStalled)
}
