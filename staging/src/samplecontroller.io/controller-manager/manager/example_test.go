// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// newController makes a controller that does nothing.
func newController(_ context.Context, c *controller.Context) (controller.Controller, error) {
	return controller.For[*corev1.ConfigMap](c).Reconcile(func(context.Context,
		*controller.Request[*corev1.ConfigMap]) error {
		return nil
	})
}

// The main function of a program.
func Example() {
	os.Exit(manager.Main(manager.Program{
		Name: "example-manager", Port: 10263,
		Controllers: []controller.Descriptor{
			{Name: "example-controller", Workers: 2, New: newController},
		},
	}))
}
