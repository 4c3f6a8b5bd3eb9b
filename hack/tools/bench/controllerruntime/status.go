// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/tools/bench/foo"
)

// conditionStatus returns the status of kubebuilder's tutorial: counts, and a condition
// Available.
func conditionStatus(object *samplev1alpha1.Foo, deployment *appsv1.Deployment) samplev1alpha1.FooStatus {
	status := foo.Counts(object, deployment)
	status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)
	available := metav1.Condition{
		Type: "Available", Status: metav1.ConditionFalse, Reason: "Reconciling", ObservedGeneration: object.Generation,
		Message: fmt.Sprintf("Deployment %s has %d of %d replicas available", deployment.Name, deployment.Status.AvailableReplicas, *deployment.Spec.Replicas),
	}
	if deployment.Status.ObservedGeneration >= deployment.Generation &&
		deployment.Status.AvailableReplicas == *deployment.Spec.Replicas {
		available.Status, available.Reason = metav1.ConditionTrue, "Available"
	}
	meta.SetStatusCondition(&status.Conditions, available)
	return status
}
