// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
)

// statusDelay is the interval of status writes: see [controller.Builder.Paced]. An object is often ready
// within it, so that no write of its progress is needed. Until then the Deployments of other
// objects are written, which users wait for.
const statusDelay = time.Second

// changeOf returns what a write of the wanted status reports: a transition to or from Ready or
// Stalled, or only progress. A new generation that is not yet ready or stalled is progress.
func changeOf(current, wanted workloadv1alpha1.Status) controller.Change {
	from, to := verdictOf(current), verdictOf(wanted)
	sameGeneration := current.ObservedGeneration == wanted.ObservedGeneration
	if from == to && (to == "" || sameGeneration) || to == "" && !sameGeneration {
		return controller.OnlyProgress
	}
	return controller.Transition
}

// verdictOf returns the type and the reason of the condition Ready or Stalled that is True, or "".
func verdictOf(s workloadv1alpha1.Status) string {
	for _, conditionType := range []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionStalled} {
		if c := meta.FindStatusCondition(s.Conditions, conditionType); c != nil && c.Status == "True" {
			return c.Type + " " + c.Reason
		}
	}
	return ""
}
