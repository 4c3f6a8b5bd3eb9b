// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Reasons of Events. The first two are named as in Kubernetes' sample-controller.
const (
	eventSynced            = "Synced"
	eventErrResourceExists = "ErrResourceExists"
)

// eventFormerDeployment is the reason of the Event about a Deployment that is left after a rename.
const eventFormerDeployment = "FormerDeploymentLeft"

// Reasons of Events about writes that repair what somebody else did, recorded once for each write.
const (
	eventCorrected = "Corrected" // a field was set back
	eventRecreated = "Recreated" // a deleted Deployment was created again
)

// event is an Event about a change of conditions.
type event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Message describe what happened.
	Reason, Message string
}

// newEvent returns the Event for a change from the old conditions of the owner to the new
// ones: the owner became ready, or it became stalled for a new reason. It returns nil for any other change, and
// for none. The library records an Event for each write that keeps failing.
func newEvent(o Owner, old, new []metav1.Condition) *event {
	ready := workloadv1alpha1.ConditionReady
	if meta.IsStatusConditionTrue(new, ready) && !meta.IsStatusConditionTrue(old, ready) {
		return &event{corev1.EventTypeNormal, eventSynced, o.Kind.Kind + " synced successfully"}
	}
	now, before := meta.FindStatusCondition(new, ready), meta.FindStatusCondition(old, ready)
	if before != nil && before.Reason == now.Reason {
		return nil
	}
	if !meta.IsStatusConditionTrue(new, workloadv1alpha1.ConditionStalled) {
		return nil
	}
	reason := now.Reason
	switch reason {
	case workloadv1alpha1.ReasonWriteDenied, workloadv1alpha1.ReasonWriteFailed,
		workloadv1alpha1.ReasonReplicasContested, workloadv1alpha1.ReasonImageContested,
		workloadv1alpha1.ReasonRewrittenByAdmission:
		return nil
	case workloadv1alpha1.ReasonDeploymentConflict:
		reason = eventErrResourceExists
	}
	return &event{corev1.EventTypeWarning, reason, now.Message}
}
