// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foo is foo-controller. It manages the Deployment that each Foo names and reports
// its state in the Foo's status, like all kinds of package workload.
package foo

import (
	"context"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the name of the controller in --controllers, its queue, metrics, logs and
// health check. It is also its Event source, field manager and user agent.
const ControllerName = "foo-controller"

// Adapter describes Foos.
var Adapter = workload.Adapter[*samplev1alpha1.Foo]{
	GroupVersionKind: samplev1alpha1.SchemeGroupVersion.WithKind("Foo"),
	App:              "nginx",
	Spec: func(foo *samplev1alpha1.Foo) workload.Spec {
		return workload.Spec{DeploymentName: foo.Spec.DeploymentName, Replicas: foo.Spec.Replicas, Image: foo.Spec.Image}
	},
	Status: func(foo *samplev1alpha1.Foo) *workloadv1alpha1.Status { return &foo.Status.Status },
}

// Descriptor returns the controller's entry in the controller map.
func Descriptor() controller.Descriptor {
	return controller.Descriptor{Name: ControllerName, Aliases: []string{"foo"}, New: newController, Workers: 10}
}

func newController(_ context.Context, c *controller.Context) (controller.Controller, error) {
	return workload.New(c, Adapter).Controller(nil)
}
