// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app has what the daemon is beside its controllers: the controller map, and the
// command that shows what a replica is doing.
package app

import (
	"github.com/spf13/cobra"

	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
	"samplecontroller.io/sample-controller-manager/pkg/controller/statusaggregator"
)

const (
	// name of the daemon.
	name = "sample-controller-manager"
	// port of HTTPS. kube-controller-manager has 10257, the scheduler 10259.
	port = 10261
)

// Program returns the daemon: it hosts the controllers of the controller map, which has one
// line for each, and any more that are given.
func Program(more ...controller.Descriptor) manager.Program {
	controllers := append([]controller.Descriptor{
		foo.Descriptor(),
		icecream.Descriptor(),
		statusaggregator.Descriptor(),
	}, more...)
	return manager.Program{
		Name: name,
		Description: `The sample controller manager is a daemon that hosts several controllers in one
process: they share one set of informers and run while the process leads.
It keeps the Deployments of the custom resources Foo and Icecream.`,
		Port:        port,
		Controllers: controllers,
		Scheme:      samplescheme.AddToScheme,
		Commands:    []*cobra.Command{newStatusCommand(controller.NewRegistry(controllers...))},
	}
}
