// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs a [Program]: a command that hosts controllers in one process.
//
//	os.Exit(manager.Main(manager.Program{
//		Name: "example-manager", Port: 10263,
//		Controllers: []controller.Descriptor{
//			{Name: "example-controller", Workers: 2, New: newController},
//		},
//	}))
//
// [Main] parses the flags, makes the enabled controllers, and starts and stops the process in
// this order:
//
//  1. The server starts first and stops last, so that probes and metrics are always available.
//  2. Informers start next, also on standbys, so that a new leader begins with full caches.
//  3. Controllers run while the process leads. On shutdown they finish their current syncs.
//     Only then is the Lease released, and finally the informers stop.
//
// Probes, /statusz and /debug/controllers show what the process is doing: see package debug.
// The flags are defined in package options.
//
// The subcommand controllers lists the controllers; preflight checks that the program would run
// in a cluster.
//
// [NewCommand], [Execute] and [Run] are the steps of Main. They are for tests, and for
// programs that need their own command.
package manager
