// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// statusDelay is how long a status that tells of progress waits. It is usually out of date
// before: most Deployments are scaled or rolled out in little more. And the Deployments of
// other objects come first, which their users wait for.
const statusDelay = time.Second

// pace remembers which objects have a status to write that waits, and since when.
type pace struct {
	mutex sync.Mutex
	since map[cache.ObjectName]time.Time
}

// wait returns how long the object's status is still to wait.
func (p *pace) wait(key cache.ObjectName, now time.Time) time.Duration {
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

// waits tells whether the object has a status that waits.
func (p *pace) waits(key cache.ObjectName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_, ok := p.since[key]
	return ok
}

// forget forgets an object whose status is written, or has nothing new to say.
func (p *pace) forget(key cache.ObjectName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.since, key)
}

// mayWait tells whether a status may wait that is to replace another: it tells only of progress,
// and until then the other does not say that an object is settled which is not.
func mayWait(current, wanted Status) bool {
	return !wanted.settled() && !(current.settled() && current.ObservedGeneration == wanted.ObservedGeneration)
}

// settled tells whether the status says that nothing is on its way: it is Ready or Stalled.
func (s Status) settled() bool {
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue && c.Type != workloadv1alpha1.ConditionReconciling {
			return true
		}
	}
	return false
}
