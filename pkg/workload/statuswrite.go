// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// After a conflicting status write, the cache is polled this long and this often for the
// new version of the object.
const (
	touchTimeout = 100 * time.Millisecond
	touchPoll    = 2 * time.Millisecond
)

// updateStatus writes the object's status if it differs, or returns the remaining delay of
// the write.
func (c *Controller[T]) updateStatus(ctx context.Context, key cache.ObjectName, obj T, state State) (wait time.Duration, err error) {
	wait, err = c.writeStatus(ctx, key, obj, state)
	if err == nil || refusalOf(err) != nil {
		return wait, err
	}
	if apierrors.IsConflict(err) {
		// The object may have changed only in something irrelevant, such as an annotation.
		// Without a second try, an object that changes all the time would never get a
		// status.
		if now, ok := c.touched(ctx, key, obj); ok {
			obj = now
			wait, err = c.writeStatus(ctx, key, now, state)
		}
	}
	if apierrors.IsNotFound(err) {
		// If the kind has no status subresource, the answer is the same as for a missing object.
		if _, stale := c.confirm(ctx, key, obj); stale == nil {
			return 0, fmt.Errorf("%w, but the object exists: has its CRD lost the subresource status?", err)
		}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// All other decisions on this version are outdated, too. The worst case is a
		// Deployment for an object that is gone: the garbage collector deletes it, which
		// enqueues the object, and so on until the cache has caught up.
		c.consistency.Conflicted(key, c.objects, obj)
	}
	if apierrors.IsNotFound(err) {
		return 0, nil // the object is gone
	}
	return wait, err
}

// touched waits for the cache to have the newer version of the object after a conflicting
// write, usually a few milliseconds. It returns false if that does not come, or if its spec
// or its status differs.
func (c *Controller[T]) touched(ctx context.Context, key cache.ObjectName, obj T) (T, bool) {
	now := obj
	err := wait.PollUntilContextTimeout(ctx, touchPoll, touchTimeout, true, func(context.Context) (bool, error) {
		now = c.latest(key, obj)
		return now.GetResourceVersion() != obj.GetResourceVersion(), nil
	})
	return now, err == nil && c.kind.SameStatus(now, obj)
}

// writeStatus writes the status of exactly this version of the object, or returns the
// remaining delay of the write. It records an Event if the object became ready or stalled.
func (c *Controller[T]) writeStatus(ctx context.Context, key cache.ObjectName, obj T, state State) (wait time.Duration, err error) {
	owner, current := c.kind.Owner(obj), c.kind.Status(obj)
	now := c.clock.Now()
	status := NewStatus(owner, state, current, metav1.NewTime(now))
	write, err := c.kind.StatusWrite(obj, current, status)
	if err != nil {
		return 0, fmt.Errorf("computing status of %s: %w", owner, err)
	}
	if write == nil {
		c.pace.forget(key)
		c.writes.Skip(c.statuses)
		return 0, nil
	}
	if mayWait(current, status) && !c.reconciler.confirmed.needed() {
		if wait := c.pace.remaining(key, now); wait > 0 {
			return wait, nil
		}
	}
	written, err := write(ctx)
	if err != nil {
		return 0, fmt.Errorf("writing status of %s: %w", owner, err)
	}
	c.pace.forget(key)
	c.consistency.WroteAt(key, c.objects, written.GetResourceVersion())
	klog.FromContext(ctx).V(2).Info("Updated status", "reason", status.Conditions[0].Reason)
	if event := NewEvent(owner, current.Conditions, status.Conditions); event != nil {
		c.recorder.Event(obj, event.Type, event.Reason, event.Message)
	}
	return 0, nil
}
