// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foo computes the Deployment and the status of a Foo. The peers of the daemon use it
// to write the same objects as the daemon. They then differ only in how often they write and
// what that costs.
package foo

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Workers is how many Foos a program syncs concurrently, if it has a setting for that.
const Workers = 10

// Kind is the kind of owner references to Foos.
var Kind = samplev1alpha1.SchemeGroupVersion.WithKind("Foo")

// Fill fills in a new Deployment for a Foo. In an existing one it sets the replicas, and the
// image if the Foo declares one.
func Fill(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if deployment.ResourceVersion == "" {
		labels := map[string]string{"app": "nginx", "controller": foo.Name}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
		}
	}
	if foo.Spec.Image != "" {
		deployment.Spec.Template.Spec.Containers[0].Image = foo.Spec.Image
	}
	deployment.Spec.Replicas = foo.Spec.Replicas
}

// Counts returns the Foo's status with the wanted counts and their generation.
func Counts(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) samplev1alpha1.FooStatus {
	status := *foo.Status.DeepCopy()
	status.ObservedGeneration = foo.Generation
	status.Replicas = deployment.Status.Replicas
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.AvailableReplicas = deployment.Status.AvailableReplicas
	return status
}

// Status returns the wanted status of the Foo. It is equal to the current one if nothing has
// changed.
func Status(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) samplev1alpha1.FooStatus {
	status := Counts(foo, deployment)
	status.Selector = metav1.FormatLabelSelector(deployment.Spec.Selector)

	wanted := ptr.Deref(deployment.Spec.Replicas, 1)
	is, reason := workloadv1alpha1.ConditionReconciling, workloadv1alpha1.ReasonProgressing
	message := fmt.Sprintf("Deployment %q has %d of %d replicas available", deployment.Name, deployment.Status.AvailableReplicas, wanted)
	switch {
	case deployment.Status.ObservedGeneration < deployment.Generation:
		message = fmt.Sprintf("Deployment %q is not yet observed by its controller", deployment.Name)
	case deployment.Status.Replicas == wanted && deployment.Status.UpdatedReplicas == wanted &&
		deployment.Status.AvailableReplicas == wanted:
		is, reason = workloadv1alpha1.ConditionReady, workloadv1alpha1.ReasonAvailable
	}
	for _, conditionType := range []string{workloadv1alpha1.ConditionReady, workloadv1alpha1.ConditionReconciling,
		workloadv1alpha1.ConditionStalled} {
		condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: foo.Generation}
		if conditionType != is {
			if conditionType != workloadv1alpha1.ConditionReady {
				meta.RemoveStatusCondition(&status.Conditions, conditionType)
				continue
			}
			condition.Status = metav1.ConditionFalse
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}
