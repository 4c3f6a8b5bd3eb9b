// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"samplecontroller.io/controller-manager/controller"
)

// NewRegistry returns the controller map: one line for each controller.
func NewRegistry() *controller.Registry[*ControllerContext] {
	return controller.NewRegistry(
		fooDescriptor(),
		icecreamDescriptor(),
		statusAggregatorDescriptor(),
	)
}
