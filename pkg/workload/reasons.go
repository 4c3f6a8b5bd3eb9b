// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// ConditionFor returns the condition that is True for a reason of the API: Stalled unless
// it is known that nobody has to do anything.
func ConditionFor(reason string) string {
	switch reason {
	case workloadv1alpha1.ReasonAvailable:
		return workloadv1alpha1.ConditionReady
	case workloadv1alpha1.ReasonProgressing, workloadv1alpha1.ReasonWaitingForDeletion, workloadv1alpha1.ReasonTerminating,
		workloadv1alpha1.ReasonReplicasContested, workloadv1alpha1.ReasonImageContested:
		return workloadv1alpha1.ConditionReconciling
	default:
		return workloadv1alpha1.ConditionStalled
	}
}
