// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The sample-controller-manager hosts the controllers of the kinds Foo and
// Icecream. From here the way to any of them is: app/program.go, pkg/controller/<name>.
package main

import (
	"os"
	"runtime/debug"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// gcPercent is by how much the heap grows before it is collected, unless GOGC says
// otherwise. Nearly all of it are caches, which stay, and little is allocated: Go's own
// 100 would take half as much memory again to save a few percent of little CPU.
const gcPercent = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(manager.Main(app.Program()))
}
