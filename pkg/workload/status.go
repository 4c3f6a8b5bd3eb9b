// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// conditionTypes are the conditions of a Status, in its order.
var conditionTypes = []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionReconciling, workloadv1alpha1.ConditionStalled}

// Status is what a parent's status says of its Deployment.
type Status struct {
	ObservedGeneration int64
	Replicas           int32
	ReadyReplicas      int32
	AvailableReplicas  int32
	Selector           string
	// Conditions are Ready, Reconciling and Stalled, in this order.
	Conditions []metav1.Condition
}

// NewStatus returns the status of the parent whose Deployment is in the given
// state. The times of the conditions in current are kept where nothing changed;
// where something did, it is now.
func NewStatus(p Parent, state State, current []metav1.Condition, now metav1.Time) Status {
	status := Status{ObservedGeneration: p.GetGeneration()}
	if d := state.Deployment; d != nil {
		status.Replicas = d.Status.Replicas
		status.ReadyReplicas = d.Status.ReadyReplicas
		status.AvailableReplicas = d.Status.AvailableReplicas
		status.Selector = metav1.FormatLabelSelector(d.Spec.Selector)
	}
	verdict := judge(p, state)
	for _, conditionType := range conditionTypes {
		condition := metav1.Condition{
			Type:               conditionType,
			Status:             metav1.ConditionFalse,
			Reason:             verdict.reason,
			ObservedGeneration: p.GetGeneration(),
			LastTransitionTime: now,
		}
		if conditionType == verdict.conditionType {
			condition.Status = metav1.ConditionTrue
		}
		if conditionType == verdict.conditionType || conditionType == workloadv1alpha1.ConditionReady {
			condition.Message = verdict.message
		}
		if old := meta.FindStatusCondition(current, conditionType); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// OwnConditions returns those of the conditions that a Status has, in its order.
func OwnConditions(conditions []metav1.Condition) []metav1.Condition {
	var own []metav1.Condition
	for _, conditionType := range conditionTypes {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
			own = append(own, *c)
		}
	}
	return own
}

// verdict is the condition that is True, and why.
type verdict struct {
	conditionType, reason, message string
}

// judge decides which condition is True. See [workloadv1alpha1.ConditionReady].
func judge(p Parent, state State) verdict {
	if o := state.Obstacle; o != nil {
		conditionType := workloadv1alpha1.ConditionStalled
		if o.Passes {
			conditionType = workloadv1alpha1.ConditionReconciling
		}
		return verdict{conditionType, o.Reason, o.Message}
	}
	d := state.Deployment
	wanted := replicasOf(d)
	if p.Replicas != nil {
		wanted = *p.Replicas
	}
	if d.Status.ObservedGeneration < d.Generation {
		return verdict{workloadv1alpha1.ConditionReconciling, workloadv1alpha1.ReasonProgressing,
			fmt.Sprintf("Deployment %q is not yet observed by its controller", d.Name)}
	}
	if d.Status.Replicas == wanted && d.Status.UpdatedReplicas == wanted && d.Status.AvailableReplicas == wanted {
		return verdict{workloadv1alpha1.ConditionReady, workloadv1alpha1.ReasonAvailable,
			fmt.Sprintf("Deployment %q has %d of %d replicas available", d.Name, wanted, wanted)}
	}
	if message, exceeded := progressDeadlineExceeded(d); exceeded {
		return verdict{workloadv1alpha1.ConditionStalled, workloadv1alpha1.ReasonProgressDeadlineExceeded, message}
	}
	return verdict{workloadv1alpha1.ConditionReconciling, workloadv1alpha1.ReasonProgressing,
		fmt.Sprintf("Deployment %q has %d of %d replicas available, %d up to date, %d in all",
			d.Name, d.Status.AvailableReplicas, wanted, d.Status.UpdatedReplicas, d.Status.Replicas)}
}

// progressDeadlineExceeded tells whether the Deployment has given up on its
// rollout, and what it says about it.
func progressDeadlineExceeded(d *appsv1.Deployment) (message string, exceeded bool) {
	i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
	})
	if i < 0 {
		return "", false
	}
	return fmt.Sprintf("Deployment %q: %s", d.Name, d.Status.Conditions[i].Message), true
}
