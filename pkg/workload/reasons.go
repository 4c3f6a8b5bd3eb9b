// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"k8s.io/apimachinery/pkg/api/meta"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/tolerant"
)

// ConditionFor returns the condition that is True for a reason: Stalled, unless the reason
// is known to need no user action.
func ConditionFor(reason string) string {
	switch reason {
	case workloadv1alpha1.ReasonAvailable:
		return workloadv1alpha1.ConditionReady
	case workloadv1alpha1.ReasonProgressing, workloadv1alpha1.ReasonWaitingForDeletion, workloadv1alpha1.ReasonTerminating,
		workloadv1alpha1.ReasonWriteFailing:
		return workloadv1alpha1.ConditionReconciling
	default:
		return workloadv1alpha1.ConditionStalled
	}
}

// reasons are the reasons that a status may have.
var reasons = []string{
	workloadv1alpha1.ReasonAvailable,
	workloadv1alpha1.ReasonProgressing,
	workloadv1alpha1.ReasonWaitingForDeletion,
	workloadv1alpha1.ReasonTerminating,
	workloadv1alpha1.ReasonWriteFailing,
	workloadv1alpha1.ReasonReplicasContested,
	workloadv1alpha1.ReasonImageContested,
	workloadv1alpha1.ReasonDeletionBlocked,
	workloadv1alpha1.ReasonDeploymentConflict,
	workloadv1alpha1.ReasonInvalidSpec,
	workloadv1alpha1.ReasonDeploymentPaused,
	workloadv1alpha1.ReasonContainerMissing,
	workloadv1alpha1.ReasonWriteDenied,
	workloadv1alpha1.ReasonWriteFailed,
	workloadv1alpha1.ReasonRewrittenByAdmission,
	workloadv1alpha1.ReasonProgressDeadlineExceeded,
	workloadv1alpha1.ReasonReplicasUnavailable,
}

// States that no condition Ready has. By the kstatus convention, an object is Reconciling while its
// status is not for its current generation. While it is paused, its status says nothing of its present state.
var (
	leftAlone   = controller.State{Condition: workloadv1alpha1.ConditionPaused, Reason: "Paused"}
	unobserved  = controller.State{Condition: workloadv1alpha1.ConditionReconciling, Reason: "Unobserved"}
	undecodable = controller.State{Condition: workloadv1alpha1.ConditionStalled, Reason: tolerant.ReasonUndecodable}
	other       = controller.State{Condition: workloadv1alpha1.ConditionStalled, Reason: "Other"}
)

// states maps the reason of the condition Ready to the state of the object.
var states = func() map[string]controller.State {
	byReason := map[string]controller.State{}
	for _, reason := range reasons {
		byReason[reason] = controller.State{Condition: ConditionFor(reason), Reason: reason}
	}
	return byReason
}()

// States returns the states in which an object may be counted, one for each reason and those
// of objects whose status gives none, or which are paused.
func States() []controller.State {
	var all []controller.State
	for _, reason := range reasons {
		all = append(all, states[reason])
	}
	return append(all, leftAlone, unobserved, undecodable, other)
}

// state returns the state of a cached object.
func (a Adapter[T]) state(obj T) controller.State {
	if _, placeholder := obj.GetAnnotations()[tolerant.AnnotationDecodeError]; placeholder {
		return undecodable
	}
	status := a.Status(obj)
	isPaused := meta.IsStatusConditionTrue(status.Conditions, workloadv1alpha1.ConditionPaused)
	if isPaused && obj.GetDeletionTimestamp() == nil {
		return leftAlone
	}
	ready := meta.FindStatusCondition(status.Conditions, workloadv1alpha1.ConditionReady)
	if ready == nil || status.ObservedGeneration != obj.GetGeneration() {
		return unobserved
	}
	if state, known := states[ready.Reason]; known {
		return state
	}
	return other
}
