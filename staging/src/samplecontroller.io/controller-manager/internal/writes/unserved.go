// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// ProbeInterval is the time between two writes of a subresource that the API server does not
// serve. It is shorter than forgetAfter, so that the controller stays Degraded meanwhile.
const ProbeInterval = 30 * time.Second

// errUnserved is the logged error.
var errUnserved = errors.New("the API server does not serve the subresource, although it has the object")

// unserved are the subresources that a controller writes and the API server does not serve.
type unserved struct {
	mutex      sync.Mutex
	byResource map[string]missing
}

// missing has the times of the first and the last write that failed, and of the next.
type missing struct{ since, last, next time.Time }

func (m missing) forgotten(now time.Time) bool { return now.Sub(m.last) >= forgetAfter }

// NotServed records that the API server has an object, but does not serve a subresource that the
// controller writes: its CRD does not declare it. resource is named as in [Write]. The first call
// logs it, and the controller is Degraded until [Transport.Served].
func (t *Transport) NotServed(ctx context.Context, resource string) {
	if t == nil {
		return
	}
	now := time.Now()
	t.unserved.mutex.Lock()
	defer t.unserved.mutex.Unlock()
	known, ok := t.unserved.byResource[resource]
	if !ok || known.forgotten(now) {
		known.since = now
		logger := klog.LoggerWithValues(klog.FromContext(ctx), "resource", resource)
		logger.Error(errUnserved, "Subresource is not served, pausing its writes: apply the CRDs of this version")
	}
	if t.unserved.byResource == nil {
		t.unserved.byResource = map[string]missing{}
	}
	t.unserved.byResource[resource] = missing{known.since, now, now.Add(ProbeInterval)}
}

// Served records that a subresource was written.
func (t *Transport) Served(ctx context.Context, resource string) {
	if t == nil {
		return
	}
	t.unserved.mutex.Lock()
	defer t.unserved.mutex.Unlock()
	if _, ok := t.unserved.byResource[resource]; ok {
		delete(t.unserved.byResource, resource)
		klog.FromContext(ctx).Info("Subresource is served again", "resource", resource)
	}
}

// Paused returns how long a subresource is not to be written, because the API server does not
// serve it; 0 if it may be written. While it is not served, one caller in [ProbeInterval] gets 0.
func (t *Transport) Paused(resource string) time.Duration {
	if t == nil {
		return 0
	}
	now := time.Now()
	t.unserved.mutex.Lock()
	defer t.unserved.mutex.Unlock()
	known, ok := t.unserved.byResource[resource]
	if !ok || known.forgotten(now) {
		return 0
	}
	if wait := known.next.Sub(now); wait > 0 {
		return wait
	}
	known.next = now.Add(ProbeInterval)
	t.unserved.byResource[resource] = known
	return 0
}

// list returns the subresources that are not served.
func (u *unserved) list(now time.Time) []Denial {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	var list []Denial
	for resource, known := range u.byResource {
		if !known.forgotten(now) {
			list = append(list, Denial{Verb: "patch", Resource: resource, Since: known.since, NotServed: true})
		}
	}
	return list
}
