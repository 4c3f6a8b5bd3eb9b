// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// Argument is the first argument of a program that must be the daemon with the faulty
// controller.
const Argument = "faulty-daemon"

// Main runs the daemon, and does not return, if the program has the argument. Call it first in
// main.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Argument {
		return
	}
	program := app.Program()
	program.Controllers = append(program.Controllers, Descriptor())
	os.Exit(manager.Execute(genericapiserver.SetupSignalContext(), program, os.Args[2:]))
}
