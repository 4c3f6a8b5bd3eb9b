// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// sync reconciles the Deployment of one object, then its status.
func (c *Controller[T]) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	if !c.consistency.EnsureReady(key) {
		return 0, reconcile.ErrStale
	}
	defer c.consistency.Done(key)
	obj, exists, err := c.cached(key)
	if err != nil {
		return 0, err
	}
	if !exists {
		c.reconciler.Forget(key)
		c.forgetStatus(key)
		return 0, nil
	}
	if obj.GetDeletionTimestamp() != nil && tolerant.DecodeError(obj) != nil {
		return 0, nil // nobody needs to fix it
	}
	if c.reporter.Report(ctx, obj) {
		return 0, nil // its spec is unknown
	}

	owner := c.kind.Owner(obj)
	owner.HadDeployment = owner.HadDeployment || c.pace.Pending(key) // a delayed status may not show it yet
	owner.Confirm = func(ctx context.Context) (string, error) { return c.confirm(ctx, key, obj) }
	state, err := c.reconciler.Reconcile(ctx, owner)
	if state.Refused != nil {
		c.consistency.Conflicted(key, c.kept, state.Refused)
	}
	if state.Unknown != nil {
		c.consistency.WroteAt(key, c.kept, state.Unknown.ResourceVersion)
	}
	if err != nil {
		return 0, err // the state is unknown, so there is nothing to report
	}
	if state.Written {
		c.consistency.WroteAt(key, c.kept, state.Deployment.ResourceVersion)
		obj = c.latest(key, obj)
	}
	if state.Created && len(state.Former) > 0 {
		c.recorder.Event(obj, corev1.EventTypeWarning, eventFormerDeployment, bounded(owner.leftOverMessage(state.Former)))
	}
	wait, err := c.updateStatus(ctx, key, obj, state)
	now := c.clock.Now()
	stalls := stallsIn(state.Deployment, unavailableSince(owner, state.Deployment, c.kind.Status(obj), metav1.NewTime(now)), now)
	return sooner(sooner(wait, state.Again), stalls), err
}

// cached returns the object from the cache.
func (c *Controller[T]) cached(key cache.ObjectName) (obj T, exists bool, err error) {
	cached, exists, err := c.objects.GetByKey(key.String())
	if err != nil {
		return obj, false, fmt.Errorf("reading the cache: %w", err)
	}
	if !exists {
		return obj, false, nil
	}
	return cached.(T), true, nil
}

// latest returns the object as cached now, or obj if its spec or UID has changed. During a
// write the object may be updated, and a status write for the old version would conflict.
func (c *Controller[T]) latest(key cache.ObjectName, obj T) T {
	now, exists, err := c.cached(key)
	if err != nil || !exists || now.GetUID() != obj.GetUID() || now.GetGeneration() != obj.GetGeneration() {
		return obj
	}
	return now
}
