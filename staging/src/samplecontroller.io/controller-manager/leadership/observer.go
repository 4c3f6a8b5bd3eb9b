// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// unlimitedLease is how long a Lease is respected after a change that says that it lasts
// longer than any may. Somebody edited it, or the holder is of another kind: if that
// lives, it renews more often than this.
const unlimitedLease = time.Minute

// releasedSeconds is the duration in a Lease that its holder has released, as
// client-go writes it.
const releasedSeconds = 1

// observer knows the Lease as this process last saw it, be it in a watch, in an
// answer or in its own writes, and when it may be taken.
type observer struct {
	client   coordinationv1client.LeaseInterface
	name     string
	identity string
	own      time.Duration // how long the Lease lasts if this process holds it
	timeout  time.Duration // of a request
	// notify is called after each observation, one at a time, with what is known:
	// nil if there is no Lease.
	notify func(ctx context.Context, lease *coordinationv1.Lease)

	mutex     sync.Mutex
	lease     *coordinationv1.Lease // nil: there is none
	version   string                // the newest resourceVersion that was seen
	known     bool                  // the Lease, or that there is none, was seen at least once
	current   bool                  // nothing has shown since that it may be another
	takeable  time.Time
	announced string        // holder and duration for which the log has reported a long wait
	changed   chan struct{} // closed at the next change
	notifying sync.Mutex
}

func newObserver(c Config, notify func(context.Context, *coordinationv1.Lease)) *observer {
	return &observer{
		client: c.Client.Leases(c.Namespace), name: c.Name, identity: c.Identity,
		own: c.LeaseDuration, timeout: c.requestTimeout(), notify: notify, changed: make(chan struct{}),
	}
}

// observe takes note of the Lease unless a newer one was seen; lease is as it was
// before its deletion if it was deleted.
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

// read asks the API server for the Lease. What it answers is newer than all that
// was seen before it was asked, even if its version is not: then a backup has been
// restored.
func (o *observer) read(ctx context.Context) (*coordinationv1.Lease, error) {
	o.mutex.Lock()
	before := o.version
	o.mutex.Unlock()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	lease, err := o.client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	o.mutex.Lock()
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

// set notes what is known now. The mutex must be held.
func (o *observer) set(lease *coordinationv1.Lease) {
	now := time.Now()
	switch {
	case o.known && same(lease, o.lease):
		// The clock of a record starts when it was first seen.
	case lease == nil || held(lease) == "" && ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) != releasedSeconds:
		// Removed or emptied by hand: its holder may not know yet, but no longer lives by
		// the duration that it wrote.
		if !o.known {
			o.takeable = now.Add(o.respected(lease))
		} else if latest := now.Add(o.own); latest.Before(o.takeable) {
			o.takeable = latest
		}
	case held(lease) == "" && lease.Annotations[preferredAnnotation] != "" && lease.Annotations[preferredAnnotation] != o.identity:
		o.takeable = now.Add(o.own) // first come the preferred
	case held(lease) == "" || held(lease) == o.identity:
		o.takeable = now
	default:
		o.takeable = now.Add(o.respected(lease))
	}
	o.lease, o.known, o.current = lease, true, true
	close(o.changed)
	o.changed = make(chan struct{})
}

// tell notifies of what is known, which may by now be newer than what the caller
// has observed, but is never older than what was told before.
func (o *observer) tell(ctx context.Context) {
	o.notifying.Lock()
	defer o.notifying.Unlock()
	o.mutex.Lock()
	lease := o.lease
	o.mutex.Unlock()
	o.notify(ctx, lease)
}

// doubt has the Lease be read before it is next said to be takeable: a write was
// not answered as it should have been, or a term was lost.
func (o *observer) doubt() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.current = false
}

// waitTakeable waits until the Lease may be taken and returns it, or the API
// server's NotFound if there is none. waited says whether it had to wait. The
// Lease must be written with its resourceVersion: what was decided on is what is
// overwritten, or nothing.
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
		o.announce(ctx, lease, left)
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, waited, ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// announce logs, once for a holder, that the wait for the Lease is long.
func (o *observer) announce(ctx context.Context, lease *coordinationv1.Lease, wait time.Duration) {
	about := fmt.Sprint(held(lease), duration(lease))
	if wait <= 2*o.own || o.announced == about {
		return
	}
	o.announced = about
	klog.FromContext(ctx).Info("Waiting long for the lease to expire", "lease", o.name, "holder", held(lease),
		"leaseDuration", duration(lease), "wait", wait.Round(time.Second))
}

// expiry returns when this process takes the Lease unless it changes, zero if it does not
// wait for it.
func (o *observer) expiry() time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.known || held(o.lease) == o.identity {
		return time.Time{}
	}
	return o.takeable
}

// seen returns the Lease as it was last seen, nil if there was none.
func (o *observer) seen() *coordinationv1.Lease {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.lease
}

// held returns who holds the Lease, empty if nobody does.
func held(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// respected returns for how long this process leaves the Lease to its holder after a
// change.
func (o *observer) respected(lease *coordinationv1.Lease) time.Duration {
	if duration := duration(lease); duration <= longestLease {
		return duration
	}
	return max(unlimitedLease, o.own)
}

// duration returns for how long the Lease says that it is held after a renewal.
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

// older reports whether version a was before b. What cannot be compared is not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
