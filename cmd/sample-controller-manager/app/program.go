// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app has the controller map of the daemon.
package app

import (
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
	"samplecontroller.io/sample-controller-manager/pkg/controller/statusaggregator"
)

// Program returns the daemon.
func Program() manager.Program {
	return manager.Program{
		Name: "sample-controller-manager",
		Description: `The sample controller manager runs several controllers in one
process: they share one set of informers and run while the process leads.
It keeps the Deployments of the custom resources Foo and Icecream.`,
		Port: 10261, // kube-controller-manager has 10257, the scheduler 10259
		Controllers: []controller.Descriptor{
			foo.Descriptor(),
			icecream.Descriptor(),
			statusaggregator.Descriptor(),
		},
		Scheme: samplescheme.AddToScheme,
	}
}
