// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/kinds"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the name of the controller in --controllers, its queue, metrics, logs and
// health check. It is also its Event source, field manager and user agent.
const ControllerName = kinds.FooController

// NewController returns the controller. The client writes the statuses of Foos. See
// [workload.NewController].
func NewController(client samplev1alpha1client.FoosGetter, o workload.Options[*samplev1alpha1.Foo]) (*workload.Controller[*samplev1alpha1.Foo], error) {
	return workload.NewController(ControllerName, kind{client}, o)
}
