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

// statusDelay is how long a status write that only reports progress is delayed. The object
// is often ready by then, so the write is not needed. Until then the Deployments of other
// objects are written, which users wait for.
const statusDelay = time.Second

// pace remembers the objects whose status writes are delayed, and since when. It is safe
// for concurrent use.
type pace struct {
	mutex sync.Mutex
	since map[cache.ObjectName]time.Time
}

// remaining returns the remaining delay of the object's status write.
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

// waits reports whether the object's status write is delayed.
func (p *pace) waits(key cache.ObjectName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, ok := p.since[key]
	return ok
}

// forget removes an object whose status was written or is up to date.
func (p *pace) forget(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.since, key)
}

// mayWait reports whether the write of the wanted status may be delayed: it only reports
// progress, and the current status does not say that this generation is ready or stalled.
func mayWait(current, wanted Status) bool {
	return !wanted.settled() && !(current.settled() && current.ObservedGeneration == wanted.ObservedGeneration)
}

// settled reports whether the status is Ready or Stalled.
func (s Status) settled() bool {
	return meta.IsStatusConditionTrue(s.Conditions, workloadv1alpha1.ConditionReady) ||
		meta.IsStatusConditionTrue(s.Conditions, workloadv1alpha1.ConditionStalled)
}
