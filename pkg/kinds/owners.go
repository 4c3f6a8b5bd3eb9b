// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// The kinds whose objects own Deployments.
var (
	Foo      = samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
	Icecream = icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream")
)

// FooOwner returns the Foo as the owner of its Deployment.
func FooOwner(foo *samplev1alpha1.Foo) workload.Owner {
	return workload.Owner{
		Object:             foo,
		Kind:               Foo,
		App:                "nginx",
		DeploymentName:     foo.Spec.DeploymentName,
		Replicas:           foo.Spec.Replicas,
		Image:              foo.Spec.Image,
		ObservedGeneration: foo.Status.ObservedGeneration,
		Problem:            problemIn(foo.Status.Pods),
		HadDeployment:      foo.Status.Selector != "",
	}
}

// IcecreamOwner is like [FooOwner] for an Icecream.
func IcecreamOwner(icecream *icecreamv1alpha1.Icecream) workload.Owner {
	return workload.Owner{
		Object:             icecream,
		Kind:               Icecream,
		App:                "icecream",
		DeploymentName:     icecream.Spec.DeploymentName,
		Replicas:           icecream.Spec.Replicas,
		Image:              icecream.Spec.Image,
		ObservedGeneration: icecream.Status.ObservedGeneration,
		Problem:            problemIn(icecream.Status.Pods),
		HadDeployment:      icecream.Status.Selector != "",
	}
}

// problemIn returns what the summary says of the Pod that is worst off, "" if nothing is wrong.
func problemIn(pods *workloadv1alpha1.PodSummary) string {
	if pods == nil || len(pods.Problems) == 0 {
		return ""
	}
	p := pods.Problems[0]
	problem := fmt.Sprintf("Pod %q: %s", p.Pod, p.Reason)
	if p.Message != "" {
		problem += ": " + p.Message
	}
	return problem
}
