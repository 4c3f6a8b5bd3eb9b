// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplev1alpha1apply "samplecontroller.io/client-go/applyconfiguration/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// kind is the kind that the controller is for.
var kind = samplev1alpha1.SchemeGroupVersion.WithKind("Foo")

// parentOf returns the Foo as the parent of its Deployment.
func parentOf(foo *samplev1alpha1.Foo) workload.Parent {
	return workload.Parent{
		Object:         foo,
		Kind:           kind,
		App:            "nginx",
		DeploymentName: foo.Spec.DeploymentName,
		Replicas:       foo.Spec.Replicas,
		Image:          foo.Spec.Image,
	}
}

// newStatus returns what the controller's part of the Foo's status should be.
func newStatus(foo *samplev1alpha1.Foo, state workload.State, now metav1.Time) samplev1alpha1.FooStatus {
	s := workload.NewStatus(parentOf(foo), state, foo.Status.Conditions, now)
	return samplev1alpha1.FooStatus{
		ObservedGeneration: s.ObservedGeneration,
		Replicas:           s.Replicas,
		ReadyReplicas:      s.ReadyReplicas,
		AvailableReplicas:  s.AvailableReplicas,
		Selector:           s.Selector,
		Conditions:         s.Conditions,
	}
}

// equalStatus compares what the controller owns of two statuses: neither what the
// aggregator writes nor conditions that others have added.
func equalStatus(a, b samplev1alpha1.FooStatus) bool {
	a.Pods, b.Pods = nil, nil
	a.Conditions, b.Conditions = workload.OwnConditions(a.Conditions), workload.OwnConditions(b.Conditions)
	return equality.Semantic.DeepEqual(a, b)
}

// applyStatus returns the apply configuration of the status, bound to the very
// version of the Foo that it was computed from: applied late, it must not land on
// a Foo that was created anew under the same name.
func applyStatus(foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) *samplev1alpha1apply.FooApplyConfiguration {
	apply := samplev1alpha1apply.FooStatus().
		WithObservedGeneration(status.ObservedGeneration).
		WithReplicas(status.Replicas).
		WithReadyReplicas(status.ReadyReplicas).
		WithAvailableReplicas(status.AvailableReplicas).
		WithSelector(status.Selector)
	for _, c := range status.Conditions {
		apply.WithConditions(metav1apply.Condition().
			WithType(c.Type).
			WithStatus(c.Status).
			WithObservedGeneration(c.ObservedGeneration).
			WithLastTransitionTime(c.LastTransitionTime).
			WithReason(c.Reason).
			WithMessage(c.Message))
	}
	return samplev1alpha1apply.Foo(foo.Name, foo.Namespace).
		WithResourceVersion(foo.ResourceVersion).
		WithStatus(apply)
}
