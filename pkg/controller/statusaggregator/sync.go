// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// aggregator writes the summaries of one kind.
type aggregator[T workload.Object] struct {
	kind        kind[T]
	statuses    string // the resource that is written, as metrics name it
	objects     cache.TypedIndexer[T]
	chain       *ownership.Chain
	writes      *writes.Transport
	consistency *reconcile.ConsistencyStore
	pace        *reconcile.Pace
	interval    time.Duration // of the pace
	refusals    *workload.StatusRefusals[T]
}

// sync writes the Pod summary of one object if it differs from that in its status.
func (a *aggregator[T]) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	if !a.consistency.EnsureReady(key) {
		return 0, reconcile.ErrStale
	}
	defer a.consistency.Done(key)
	cached, exists, err := a.objects.GetByKey(key.String())
	if err != nil {
		return 0, fmt.Errorf("reading the cache: %w", err)
	}
	if !exists {
		a.pace.Forget(key)
		a.refusals.Forget(key)
		return 0, nil
	}
	obj := cached.(T)
	if tolerant.DecodeError(obj) != nil {
		return 0, nil
	}
	// This is checked first: the cost of an event must not grow with the number of Pods.
	if wait := a.pace.Throttled(key, obj.GetUID()); wait > 0 {
		return wait, nil
	}

	before, now, err := a.summaries(obj)
	if err != nil {
		return 0, err
	}
	if same(before, now) {
		a.pace.UpToDate(key)
		a.refusals.Forget(key)
		a.writes.Skip(a.statuses)
		return 0, nil
	}
	change := reconcile.Transition
	if lags(before, now) {
		change = reconcile.OnlyProgress
	}
	if wait := a.pace.Wait(key, obj.GetUID(), change); wait > 0 {
		return wait, nil
	}
	if wait := a.refusals.Paused(); wait > 0 {
		return wait, nil
	}
	applied, err := a.write(ctx, key, obj, now)
	if err != nil {
		return a.failed(ctx, key, obj, err)
	}
	a.refusals.Succeeded(ctx, key)
	a.consistency.WroteAt(key, a.objects, applied.GetResourceVersion())
	klog.FromContext(ctx).V(4).Info("Updated status", "pods", now)
	return a.interval, nil // changes until then do not enqueue it
}

// failed handles the error of a write, and returns the result of the sync.
func (a *aggregator[T]) failed(ctx context.Context, key cache.ObjectName, obj T, err error) (again time.Duration, _ error) {
	again, err = a.refusals.Failed(ctx, obj, err)
	switch {
	case err == nil:
		return again, nil
	case workload.IsGone(err):
		a.consistency.Conflicted(key, a.objects, obj)
		return a.interval, nil // a re-created object of the same name was not enqueued
	case workload.IsConflict(err):
		a.consistency.Conflicted(key, a.objects, obj)
	}
	return 0, fmt.Errorf("applying the Pod summary of %s %q: %w", a.kind.groupVersionKind.Kind, key.Name, err)
}

// summaries returns the summary in the object's status, nil if there is none, and the
// present summary of the Pods of the Deployment that the status describes, nil if they are not
// watched.
func (a *aggregator[T]) summaries(obj T) (before, now *workloadv1alpha1.PodSummary, err error) {
	before = a.kind.summary(obj)
	owned, err := a.chain.DeploymentsOf(obj.GetNamespace(), obj.GetUID())
	if err != nil {
		return nil, nil, err
	}
	reported := a.kind.owner(obj).Reported(owned)
	if reported != nil && !ownership.PodsWatched(reported) {
		return before, nil, nil
	}
	pods, err := a.chain.PodsOf(reported)
	if err != nil {
		return nil, nil, err
	}
	now = new(summarize(pods))
	now.ObservedGeneration = obj.GetGeneration()
	return before, now, nil
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

// write applies the summary of an object. Every write throttles the object for an interval, also
// one that lags.
func (a *aggregator[T]) write(ctx context.Context, key cache.ObjectName, obj T, now *workloadv1alpha1.PodSummary) (applied T, err error) {
	err = a.pace.Write(key, obj.GetUID(), reconcile.Transition, func() (err error) {
		applied, err = a.kind.apply(ctx, obj, now)
		if err == nil && now == nil && a.kind.summary(applied) != nil {
			applied, err = workload.RemoveStray(ctx, ControllerName, applied, a.kind.patch(applied), "/status/pods")
		}
		return err
	})
	return applied, err
}
