// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/reconcile"
)

// After a conflicting status write, the cache is polled this long and this often for the
// new version of the object.
const (
	touchTimeout = 100 * time.Millisecond
	touchPoll    = 2 * time.Millisecond
)

// updateStatus writes the object's status if it differs, or returns the remaining delay of
// the write.
func (c *Controller[T]) updateStatus(ctx context.Context, key cache.ObjectName, obj T, state State) (time.Duration, error) {
	wait, err := c.writeStatus(ctx, key, obj, state)
	if IsConflict(err) {
		// The object may have changed only in something irrelevant, such as an annotation.
		// Without a second try, an object that changes all the time would never get a
		// status.
		if now, ok := c.touched(ctx, key, obj); ok {
			obj = now
			wait, err = c.writeStatus(ctx, key, now, state)
		}
	}
	if err == nil {
		return wait, nil
	}
	wait, err = c.refusals.Failed(ctx, obj, err)
	if IsGone(err) || IsConflict(err) {
		// All other decisions on this version are outdated, too. The worst case is a
		// Deployment for an object that is gone: the garbage collector deletes it, which
		// enqueues the object, and so on until the cache has caught up.
		c.consistency.Conflicted(key, c.objects, obj)
	}
	if IsGone(err) {
		return 0, nil
	}
	return wait, err
}

// exists reports whether the API server has the object.
func (c *Controller[T]) exists(ctx context.Context, obj T) (bool, error) {
	// This is a list of one object, because the list permission is needed anyway.
	found, _, err := c.kind.List(ctx, obj.GetNamespace(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()).String(),
	})
	return slices.ContainsFunc(found, func(now T) bool { return now.GetUID() == obj.GetUID() }), err
}

// forgetStatus forgets the status of an object that is gone.
func (c *Controller[T]) forgetStatus(key cache.ObjectName) {
	c.pace.Forget(key)
	c.refusals.Forget(key)
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
		c.pace.UpToDate(key)
		c.refusals.Forget(key)
		c.writes.Skip(c.statuses)
		return 0, nil
	}
	change := changeOf(current, status)
	urgency := change
	if c.reconciler.confirmed.needed() {
		urgency = reconcile.Transition
	}
	if wait := c.pace.Wait(key, obj.GetUID(), urgency); wait > 0 {
		return wait, nil
	}
	if wait := c.refusals.Paused(); wait > 0 {
		return wait, nil
	}
	var written T
	err = c.pace.Write(key, obj.GetUID(), change, func() (err error) {
		written, err = write(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("writing status of %s: %w", owner, err)
	}
	c.refusals.Succeeded(ctx, key)
	c.consistency.WroteAt(key, c.objects, written.GetResourceVersion())
	klog.FromContext(ctx).V(2).Info("Updated status", "reason", status.Conditions[0].Reason)
	if event := NewEvent(owner, current.Conditions, status.Conditions); event != nil {
		c.recorder.Event(obj, event.Type, event.Reason, event.Message)
	}
	return 0, nil
}
