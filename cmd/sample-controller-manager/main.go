// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The sample-controller-manager runs the controllers of the kinds Foo and Icecream.
// app/program.go lists them; each is in pkg/controller/<name>.
package main

import (
	"os"
	"runtime/debug"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// gcPercent is how much the heap may grow before a garbage collection, unless GOGC is set.
// Nearly all of the heap is caches that stay, and little is allocated. Go's default of 100
// would use half as much memory again to save a few percent of a low CPU usage.
const gcPercent = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(manager.Main(app.Program()))
}
