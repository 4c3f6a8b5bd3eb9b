// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// aggregator writes the Pod summaries of the objects of one kind.
type aggregator[T controller.Object] struct {
	adapter     workload.Adapter[T]
	deployments *controller.Reader[*appsv1.Deployment]
	chain       *pods.Chain
}

// newAggregator returns the controller of one kind, which has a queue of its own.
func newAggregator[T controller.Object](
	c *controller.Context, adapter workload.Adapter[T], queue string, interval *controller.LiveDuration,
) (controller.Controller, error) {
	a := &aggregator[T]{adapter: adapter}
	objects := controller.For[T](c, controller.MayPatchStatus(), controller.Secondary(), controller.Queue(queue),
		workload.Cached[T]())
	// A throttled object is called again at the end of its interval anyway.
	throttled := func(key cache.ObjectName) bool { return objects.Throttled(key) > 0 }
	ofDeployment := func(d *appsv1.Deployment) []cache.ObjectName {
		return slices.DeleteFunc(pods.OwnerKeys(adapter.GroupVersionKind, d), throttled)
	}
	a.deployments = controller.Watch(objects, ofDeployment,
		append(workload.CachedDeployments(c), controller.Changes(mayBeReportedInstead), pods.DeploymentIndex())...)
	a.chain = pods.Watch(objects, adapter.GroupVersionKind, a.deployments.Get, pods.Filter{Skips: throttled})
	objects.OnDeletion() // a finalizer may hold an object, and its Pods still change
	objects.PacedLive(interval, func(before, after T) controller.Change {
		if lags(adapter.Status(before).Pods, adapter.Status(after).Pods) {
			return controller.OnlyProgress
		}
		return controller.Transition
	})
	objects.Explain(a.explain)
	return objects.Reconcile(a.reconcile)
}

// reconcile writes the Pod summary of one object if it differs from that in its status.
func (a *aggregator[T]) reconcile(ctx context.Context, r *controller.Request[T]) error {
	// This is checked first: the cost of an event must not grow with the number of Pods.
	if wait := r.Throttled(); wait > 0 {
		r.RequeueAfter(wait)
		return nil
	}
	obj, ok := r.Object()
	if !ok {
		return nil
	}
	a.adapter.Status(obj).Pods = a.summaryOf(obj)
	err := r.UpdateStatus(ctx, obj)
	r.RequeueAfter(r.Throttled()) // changes until then do not enqueue it
	return err
}

// summaryOf returns the summary of the Pods of the Deployment that the object's status describes, nil if
// they are not watched.
func (a *aggregator[T]) summaryOf(obj T) *workloadv1alpha1.PodSummary {
	owned := pods.DeploymentsOf(a.deployments, obj.GetNamespace(), obj.GetUID())
	reported := a.adapter.Owner(obj).Reported(owned)
	if reported != nil && !pods.Watched(reported) {
		return nil
	}
	summary := summarize(a.chain.PodsOf(reported))
	summary.ObservedGeneration = obj.GetGeneration()
	return &summary
}

// explain explains what the controller does about an object.
func (a *aggregator[T]) explain(r *controller.Request[T]) controller.Explanation {
	obj, _ := r.Object()
	before, now, kind := a.adapter.Status(obj).Pods, a.summaryOf(obj), a.adapter.GroupVersionKind.Kind
	fact := controller.Fact{Name: "Pod summary of the " + kind, Differs: !same(before, now)}
	fact.Wanted = "(unknown: some Pods are not watched)"
	if now != nil {
		fact.Wanted = now.Summary
	}
	if before != nil {
		fact.Actual = before.Summary
	}
	next, wait := "write its status", r.Throttled()
	switch {
	case !fact.Differs:
		next = "nothing: its status has the summary of its Pods"
	case wait > 0:
		next = fmt.Sprintf("write its status in %v; it was written just now", wait.Round(time.Millisecond))
	case before == nil && now.Total == 0:
		next = "write its status if it still has no Pods after the grace period"
	case lags(before, now):
		next = fmt.Sprintf("write generation %d into its status", now.ObservedGeneration)
	}
	return controller.Explanation{Facts: []controller.Fact{fact}, Next: kind + ": " + next}
}

// lags reports whether the Pods do not yet reflect the object's present generation. They
// usually do soon, and then one write is enough for both.
func lags(before, now *workloadv1alpha1.PodSummary) bool {
	switch {
	case now == nil:
		return false
	case before == nil:
		return now.Total == 0
	}
	earlier := *now
	earlier.ObservedGeneration = before.ObservedGeneration
	return same(before, &earlier)
}

// mayBeReportedInstead reports whether a change of a Deployment may change which Deployment the
// status of an object describes.
func mayBeReportedInstead(before, now *appsv1.Deployment) bool {
	if before == nil || now == nil {
		return true
	}
	a, b := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(now)
	return before.UID != now.UID || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		(a == nil) != (b == nil) || a != nil && a.UID != b.UID
}
