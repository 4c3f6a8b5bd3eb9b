// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Reasons of Events, named as in Kubernetes' sample-controller.
const (
	eventSynced            = "Synced"
	eventErrResourceExists = "ErrResourceExists"
)

// Event is an Event about a change of conditions.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Message describe what happened.
	Reason, Message string
}

// NewEvent returns the Event for a change from the old conditions of the owner to the new
// ones: the owner became ready, or it became stalled for a new reason. It returns nil for
// any other change, and for none.
func NewEvent(o Owner, old, new []metav1.Condition) *Event {
	ready, stalled := workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionStalled
	if meta.IsStatusConditionTrue(new, ready) && !meta.IsStatusConditionTrue(old, ready) {
		return &Event{corev1.EventTypeNormal, eventSynced, o.Kind.Kind + " synced successfully"}
	}
	if !meta.IsStatusConditionTrue(new, stalled) {
		return nil
	}
	condition := meta.FindStatusCondition(new, stalled)
	if before := meta.FindStatusCondition(old, stalled); before != nil && before.Status == metav1.ConditionTrue && before.Reason == condition.Reason {
		return nil
	}
	reason := condition.Reason
	if reason == workloadv1alpha1.ReasonDeploymentConflict {
		reason = eventErrResourceExists
	}
	return &Event{corev1.EventTypeWarning, reason, condition.Message}
}
