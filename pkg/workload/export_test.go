// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
)

// ByDeployment is the name of the index of objects by Deployment.
const ByDeployment = byDeployment

// StatusDelay is how long a status that only reports progress is delayed.
const StatusDelay = statusDelay

// DeletionGrace is how long the deletion of a Deployment may take until its holder is named.
const DeletionGrace = deletionGrace

// Sync calls the sync function of the controller's loop.
func (c *Controller[T]) Sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	return c.sync(ctx, key)
}

// Concerned returns the keys that a Deployment enqueues.
func (c *Controller[T]) Concerned(deployment *appsv1.Deployment) []cache.ObjectName {
	return c.concerned(deployment)
}

// SetClock replaces the controller's clock.
func (c *Controller[T]) SetClock(clock clock.PassiveClock) {
	c.clock, c.reconciler.clock, c.refusals.clock, c.pace = clock, clock, clock, reconcile.NewPace(statusDelay, clock)
}

// CatchUp marks the cache as containing everything from before the term.
func (c *Controller[T]) CatchUp() { c.reconciler.confirmed.caughtUp = true }

// Confirmed returns the number of confirmed objects.
func (c *Controller[T]) Confirmed() int { return len(c.reconciler.confirmed.byKey) }

// Pending reports whether the object's status is still to be written.
func (c *Controller[T]) Pending(key cache.ObjectName) bool { return c.pace.Pending(key) }

// CountGenerations makes each patch of a Deployment increment its generation, as the API
// server does when the spec changes.
func CountGenerations(client *fake.Clientset) {
	patch := clienttesting.ObjectReaction(client.Tracker())
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, patched, err := patch(action)
		if err != nil {
			return true, nil, err
		}
		d := patched.(*appsv1.Deployment).DeepCopy()
		d.Generation++
		return true, d, client.Tracker().Update(action.GetResource(), d, d.Namespace)
	})
}
