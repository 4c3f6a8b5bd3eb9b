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
)

// ByDeployment is the name of the index of objects by Deployment.
const ByDeployment = byDeployment

// StatusDelay is how long a status waits that reports only progress.
const StatusDelay = statusDelay

// Sync is what the controller's loop does for one object.
func (c *Controller[T]) Sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	return c.sync(ctx, key)
}

// Concerned returns the keys that a Deployment enqueues.
func (c *Controller[T]) Concerned(deployment *appsv1.Deployment) []cache.ObjectName {
	return c.concerned(deployment)
}

// SetClock replaces the controller's clock.
func (c *Controller[T]) SetClock(clock clock.PassiveClock) { c.clock = clock }

// CatchUp makes the cache have all from before the term.
func (c *Controller[T]) CatchUp() { c.reconciler.confirmed.caughtUp = true }

// Confirmed returns how many objects are remembered as confirmed.
func (c *Controller[T]) Confirmed() int { return len(c.reconciler.confirmed.byKey) }

// Waiting returns how many objects have a status that waits.
func (c *Controller[T]) Waiting() int { return len(c.pace.since) }

// CountGenerations has each patch of a Deployment increment its generation, as the API server
// does where the spec changes.
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
