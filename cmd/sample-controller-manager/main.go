// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The sample-controller-manager hosts the controllers of the kinds Foo and
// Icecream. From here the way to any of them is: app/command.go,
// app/descriptors.go, pkg/controller/<name>.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

func main() {
	// First of all, so that a signal at any later moment ends the process in order.
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(app.Execute(ctx, app.NewRegistry(), os.Args[1:]))
}
