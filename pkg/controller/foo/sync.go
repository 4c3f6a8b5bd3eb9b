// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// A Foo that was touched while its status was written is waited for this long, and
// looked for this often.
const (
	touchTimeout = 100 * time.Millisecond
	touchPoll    = 2 * time.Millisecond
)

// sync brings one Foo's Deployment to where it should be, then its status.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	if !c.written.Seen(key) {
		return 0, reconcile.ErrStale
	}
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading Foo: %w", err)
	}
	if foo.DeletionTimestamp != nil {
		return 0, nil
	}
	if c.reporter.Report(ctx, foo) {
		return 0, nil // nothing is known of what it wants
	}

	parent := parentOf(foo)
	if foo.Status.Selector != "" { // it had a Deployment
		parent.Confirm = func(ctx context.Context) error { return c.confirm(ctx, foo) }
	}
	state, err := c.keeper.Keep(ctx, parent)
	if state.Refused != nil {
		c.written.Refused(key, c.keptStore, state.Refused)
	}
	if err != nil {
		return 0, err // nothing is known that a status could say
	}
	if state.Written {
		c.written.Note(key, c.keptStore, state.Deployment.ResourceVersion)
		foo = c.latest(foo)
	}
	return state.Again, c.updateStatus(ctx, foo, state)
}

// confirm returns a conflict if the Foo is by now gone or being deleted; it rests then
// until the cache knows.
func (c *Controller) confirm(ctx context.Context, foo *samplev1alpha1.Foo) error {
	// To list one is to get it, by a verb that is granted anyway.
	found, err := c.fooClient.Foos(foo.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, foo.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("confirming Foo: %w", err)
	}
	for _, now := range found.Items {
		if now.UID == foo.UID && now.DeletionTimestamp == nil {
			return nil
		}
	}
	c.written.Refused(cache.MetaObjectToName(foo), c.fooStore, foo)
	return apierrors.NewConflict(samplev1alpha1.Resource("foos"), foo.Name, errors.New("it is gone, or being deleted"))
}

// latest returns the Foo as it is cached by now, if it wants what it wanted. A write
// takes its time, and a status for a version from before it might be refused.
func (c *Controller) latest(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	now, err := c.foos.Foos(foo.Namespace).Get(foo.Name)
	if err != nil || now.UID != foo.UID || now.Generation != foo.Generation {
		return foo
	}
	return now
}

// updateStatus writes the Foo's status if it differs from what it should be.
func (c *Controller) updateStatus(ctx context.Context, foo *samplev1alpha1.Foo, state workload.State) error {
	err := c.writeStatus(ctx, foo, state)
	if apierrors.IsConflict(err) {
		// It may have been changed in what does not matter here, an annotation for
		// example. Without a second try, one that is changed all the time would be
		// refused again and again.
		if now := c.touched(ctx, foo); now != nil {
			foo, err = now, c.writeStatus(ctx, now, state)
		}
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// Whatever else is decided on this version is late as well. The worst would be
		// a Deployment for a Foo that is gone: the garbage collector takes it away,
		// which would wake the Foo, and so on until the cache has caught up.
		c.written.Refused(cache.MetaObjectToName(foo), c.fooStore, foo)
	}
	if apierrors.IsNotFound(err) {
		return nil // the Foo is gone, and its status with it
	}
	return err
}

// touched returns the Foo as it is once the cache has what a refused write has shown it
// not to have, which is usually a matter of milliseconds. It returns nil if the Foo wants
// or says something else by then.
func (c *Controller) touched(ctx context.Context, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	now := foo
	err := wait.PollUntilContextTimeout(ctx, touchPoll, touchTimeout, true, func(context.Context) (bool, error) {
		now = c.latest(foo)
		return now.ResourceVersion != foo.ResourceVersion, nil
	})
	if err != nil || now.DeletionTimestamp != nil || !equalStatus(now.Status, foo.Status) {
		return nil
	}
	return now
}

// writeStatus writes the status of this very version of the Foo, and records an Event
// if the Foo thereby became ready or stalled.
func (c *Controller) writeStatus(ctx context.Context, foo *samplev1alpha1.Foo, state workload.State) error {
	status := newStatus(foo, state, metav1.NewTime(c.clock.Now()))
	if equalStatus(foo.Status, status) {
		return nil
	}
	applied, err := c.fooClient.Foos(foo.Namespace).ApplyStatus(ctx, applyStatus(foo, status), metav1.ApplyOptions{FieldManager: ControllerName, Force: true})
	if err != nil {
		return fmt.Errorf("applying status of Foo: %w", err)
	}
	c.written.Note(cache.MetaObjectToName(foo), c.fooStore, applied.ResourceVersion)
	klog.FromContext(ctx).V(2).Info("Updated status", "reason", status.Conditions[0].Reason)
	if event := workload.NewEvent(parentOf(foo), foo.Status.Conditions, status.Conditions); event != nil {
		c.recorder.Event(foo, event.Type, event.Reason, event.Message)
	}
	return nil
}
