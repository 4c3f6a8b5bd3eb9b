// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// unlimitedLease is how long a Lease is respected after a change if its duration exceeds
// the maximum. Somebody edited it, or another kind of holder wrote it. Such a holder, if
// alive, renews more often than this.
const unlimitedLease = time.Minute

// releasedSeconds is the duration in a released Lease, as client-go writes it.
const releasedSeconds = 1

// observer holds the Lease as this process last saw it, from a watch, a response or its own
// write, and when the Lease may be taken.
type observer struct {
	client   coordinationv1client.LeaseInterface
	name     string
	identity string
	own      time.Duration // how long the Lease lasts if this process holds it
	timeout  time.Duration // of each request
	// notify is called after each observation with the current Lease, nil if there is
	// none. Calls do not overlap.
	notify func(ctx context.Context, lease *coordinationv1.Lease)
	access *access

	mutex    sync.Mutex
	lease    *coordinationv1.Lease // nil if there is none
	version  string                // newest resourceVersion seen
	known    bool                  // the Lease or its absence was seen at least once
	current  bool                  // no reason since to doubt the Lease
	takeable time.Time
	// confirmed is when the Lease was last known to be current, from a response or a change.
	// At first it is when the observer was made.
	confirmed time.Time
	responded bool          // confirmed at least once
	changed   chan struct{} // closed at the next change
	notifying sync.Mutex
}

func newObserver(c Config, notify func(context.Context, *coordinationv1.Lease)) *observer {
	return &observer{
		client: c.Client.Leases(c.Namespace), name: c.Name, identity: c.Identity,
		own: c.LeaseDuration, timeout: c.requestTimeout(), notify: notify, changed: make(chan struct{}),
		access: &access{namespace: c.Namespace, metrics: c.Metrics, reconnect: c.Reconnect}, confirmed: time.Now(),
	}
}

// observe records the Lease unless a newer one was seen. If deleted, lease is its last
// state before the deletion.
func (o *observer) observe(ctx context.Context, lease *coordinationv1.Lease, deleted bool) {
	o.mutex.Lock()
	if older(lease.ResourceVersion, o.version) {
		o.mutex.Unlock()
		return
	}
	o.version = lease.ResourceVersion
	if deleted {
		lease = nil
	}
	o.set(lease)
	o.mutex.Unlock()
	o.tell(ctx)
}

// read gets the Lease from the API server. The response replaces everything seen before the
// request, even if its version is older: then a backup was restored.
func (o *observer) read(ctx context.Context) (*coordinationv1.Lease, error) {
	o.mutex.Lock()
	before := o.version
	o.mutex.Unlock()
	requestCtx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	lease, err := o.client.Get(requestCtx, o.name, metav1.GetOptions{})
	if ctx.Err() == nil {
		err = o.access.recordRead(err)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	o.mutex.Lock()
	o.confirmed, o.responded = time.Now(), true
	if o.version == before || err == nil && !older(lease.ResourceVersion, o.version) {
		if err != nil {
			lease = nil
		} else {
			o.version = lease.ResourceVersion
		}
		o.set(lease)
	}
	o.mutex.Unlock()
	o.tell(ctx)
	return lease, err
}

// set records the current Lease. The mutex must be held.
func (o *observer) set(lease *coordinationv1.Lease) {
	now := time.Now()
	if o.known && !same(lease, o.lease) {
		o.confirmed, o.responded = now, true
	}
	switch {
	case o.known && same(lease, o.lease):
		// The wait counts from when a record was first seen.
	case lease == nil || held(lease) == "" && ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) != releasedSeconds:
		// Deleted or emptied by hand. Its holder may not know yet, but no longer holds the
		// Lease for the duration that it wrote.
		if !o.known {
			o.takeable = now.Add(o.respected(lease))
		} else if latest := now.Add(o.own); latest.Before(o.takeable) {
			o.takeable = latest
		}
	case held(lease) == "" && lease.Annotations[preferredAnnotation] != "" &&
		lease.Annotations[preferredAnnotation] != o.identity:
		o.takeable = now.Add(o.own) // the preferred holder comes first
	case held(lease) == "" || held(lease) == o.identity:
		o.takeable = now
	default:
		o.takeable = now.Add(o.respected(lease))
	}
	o.lease, o.known, o.current = lease, true, true
	close(o.changed)
	o.changed = make(chan struct{})
}

// tell calls notify with the current Lease. That may be newer than what the caller observed,
// but is never older than that of the previous call.
func (o *observer) tell(ctx context.Context) {
	o.notifying.Lock()
	defer o.notifying.Unlock()
	o.mutex.Lock()
	lease := o.lease
	o.mutex.Unlock()
	o.notify(ctx, lease)
}

// doubt makes the observer read the Lease again before it may be taken. Call it after a
// failed write.
func (o *observer) doubt() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.current = false
}

// waitTakeable waits until the Lease may be taken and returns it, or the API server's
// NotFound error if there is none. waited is whether it had to wait. Callers must write the
// Lease with the resourceVersion returned, so that they never overwrite a newer one.
func (o *observer) waitTakeable(ctx context.Context) (lease *coordinationv1.Lease, waited bool, err error) {
	for {
		o.mutex.Lock()
		lease, current, left, changed := o.lease, o.current, time.Until(o.takeable), o.changed
		o.mutex.Unlock()
		if !current {
			if _, err := o.read(ctx); err != nil && !apierrors.IsNotFound(err) {
				return nil, waited, err
			}
			continue
		}
		if left <= 0 && lease == nil {
			return nil, waited, apierrors.NewNotFound(coordinationv1.Resource("leases"), o.name)
		}
		if left <= 0 {
			return lease, waited, nil
		}
		waited = true
		select {
		case <-ctx.Done():
			return nil, waited, ctx.Err()
		case <-changed:
		case <-time.After(left):
		}
	}
}

// expiry returns when this process takes the Lease unless it changes. It is zero if the
// process does not wait for the Lease.
func (o *observer) expiry() time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.known || held(o.lease) == o.identity {
		return time.Time{}
	}
	return o.takeable
}

// knowledge returns whether the Lease or its absence was seen, whether that may have changed
// without being seen, because it has expired or never was a response, and when it was last
// confirmed.
func (o *observer) knowledge() (known, outdated bool, confirmed time.Time) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.known, !o.responded || !time.Now().Before(o.takeable), o.confirmed
}

// seen returns the last seen Lease, nil if there was none.
func (o *observer) seen() *coordinationv1.Lease {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.lease
}

// held returns the holder of the Lease, empty if there is none.
func held(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// respected returns how long after a change this process leaves the Lease to its holder. A
// duration that is missing or too short was edited by hand. The holder does not follow it, but
// its own configuration.
func (o *observer) respected(lease *coordinationv1.Lease) time.Duration {
	switch duration := duration(lease); {
	case duration <= releasedSeconds*time.Second && held(lease) != "":
		return o.own
	case duration <= longestLease:
		return duration
	}
	return max(unlimitedLease, o.own)
}

// duration returns the duration that the Lease states.
func duration(lease *coordinationv1.Lease) time.Duration {
	if lease == nil {
		return 0
	}
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
}

func same(a, b *coordinationv1.Lease) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// older reports whether version a is older than b. It is false if they cannot be compared.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
