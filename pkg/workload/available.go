// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// The deployment controller gives these reasons to the condition Progressing.
const (
	reasonComplete         = "NewReplicaSetAvailable"
	reasonNoReplicaSet     = "ReplicaSetCreateError"
	reasonDeadlineExceeded = "ProgressDeadlineExceeded"
)

// defaultDeadline is the API's default of spec.progressDeadlineSeconds.
const defaultDeadline = 600 * time.Second

// progressDeadline returns how long a Deployment may make no progress, 0 for any time.
func progressDeadline(d *appsv1.Deployment) time.Duration {
	switch seconds := d.Spec.ProgressDeadlineSeconds; {
	case seconds == nil:
		return defaultDeadline
	case *seconds == math.MaxInt32:
		return 0
	default:
		return time.Duration(*seconds) * time.Second
	}
}

// rolloutComplete reports whether all replicas are of the present template. The deployment
// controller then no longer watches over the progress. A paused Deployment has another reason.
func rolloutComplete(d *appsv1.Deployment) bool {
	if d.Spec.Paused {
		return d.Status.UpdatedReplicas == d.Status.Replicas && d.Status.Replicas > 0
	}
	c := conditionOf(d, appsv1.DeploymentProgressing, corev1.ConditionTrue)
	return c != nil && c.Reason == reasonComplete
}

// lacksReplicaSet reports whether the deployment controller cannot create the ReplicaSet. It gives
// up after some minutes, and neither observes the generation nor reports a missed deadline.
func lacksReplicaSet(d *appsv1.Deployment) bool {
	c := conditionOf(d, appsv1.DeploymentProgressing, corev1.ConditionFalse)
	return c != nil && c.Reason == reasonNoReplicaSet
}

// unavailableSince returns since when the deployment controller does nothing although fewer replicas
// than wanted are available: the rollout is complete, or it cannot begin. The time begins again when
// more replicas become available and when the wanted number changes. unavailableSince returns nil if
// enough are available, or if this may last for any time. current is the present status of
// the owner, so that the time survives a change of leader.
func unavailableSince(o Owner, d *appsv1.Deployment, current workloadv1alpha1.Status, now metav1.Time) *metav1.Time {
	if d == nil || o.GetDeletionTimestamp() != nil || progressDeadline(d) == 0 {
		return nil
	}
	if !lacksReplicaSet(d) && (d.Status.AvailableReplicas >= o.wanted(d) || !rolloutComplete(d)) {
		return nil
	}
	since := now
	if before := current.UnavailableSince; before != nil &&
		current.ObservedGeneration == o.GetGeneration() && d.Status.AvailableReplicas <= current.AvailableReplicas {
		since = *before
	}
	if changed := lastDeclared(d); changed.After(since.Time) && changed.Before(&now) {
		since = changed
	}
	return &metav1.Time{Time: since.Truncate(time.Second)}
}

// lastDeclared returns when replicas or image of the Deployment were last set.
func lastDeclared(d *appsv1.Deployment) metav1.Time {
	var last metav1.Time
	for _, entry := range d.ManagedFields {
		if managed(entry).any() && entry.Time != nil && last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	return last
}

// stallsIn returns the delay after which an owner whose replicas are unavailable since the given
// time is Stalled. It returns 0 if it never is, or is already.
func stallsIn(d *appsv1.Deployment, since *metav1.Time, now time.Time) time.Duration {
	if since == nil {
		return 0
	}
	return max(progressDeadline(d)-now.Sub(since.Time), 0)
}

// wanted returns the number of replicas that the Deployment should have.
func (o Owner) wanted(d *appsv1.Deployment) int32 {
	if o.Replicas != nil {
		return *o.Replicas
	}
	return replicasOf(d)
}
