// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// sync brings one Foo's Deployment to where it should be, then its status.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	if !c.written.Seen(key) {
		return 0, reconcile.ErrStale
	}
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.refused.late(key, "", c.clock.Now()) // there is nothing to be late for
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading Foo: %w", err)
	}
	if c.refused.late(key, foo.ResourceVersion, c.clock.Now()) {
		return 0, reconcile.ErrStale
	}
	if foo.DeletionTimestamp != nil {
		return 0, nil
	}
	if c.reporter.Report(ctx, foo) {
		return 0, nil // nothing is known of what it wants
	}

	state, err := c.keeper.Keep(ctx, parentOf(foo))
	if err != nil {
		return 0, err // nothing is known that a status could say
	}
	if state.Written {
		c.written.Note(key, c.keptStore, state.Deployment.ResourceVersion)
	}
	return state.Again, c.updateStatus(ctx, foo, state)
}

// updateStatus writes the Foo's status if it differs from what it should be, and
// records an Event if the Foo thereby became ready or stalled.
func (c *Controller) updateStatus(ctx context.Context, foo *samplev1alpha1.Foo, state workload.State) error {
	status := newStatus(foo, state, metav1.NewTime(c.clock.Now()))
	if equalStatus(foo.Status, status) {
		return nil
	}
	applied, err := c.fooClient.Foos(foo.Namespace).ApplyStatus(ctx, applyStatus(foo, status), metav1.ApplyOptions{FieldManager: ControllerName, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		c.refused.note(cache.MetaObjectToName(foo), foo.ResourceVersion, c.clock.Now())
	}
	if apierrors.IsNotFound(err) {
		return nil // the Foo is gone, and its status with it
	}
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
