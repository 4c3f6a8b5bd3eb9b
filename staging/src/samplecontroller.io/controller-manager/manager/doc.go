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
// [Main] parses the flags, makes the controllers that they enable, and starts and stops the
// process in this order:
//
//  1. The server starts first and stops last, so probes and metrics answer
//     through all that follows.
//  2. Informers start next, on standbys too, so that a new leader begins with
//     full caches.
//  3. Controllers run while the process leads. When it is told to end they finish
//     what they are at; only then is the Lease released; then informers stop.
//
// Probes, /statusz and /debug/controllers show what the process is doing: see package debug.
// The flags are in package options.
//
// [NewCommand], [Execute] and [Run] are the steps of Main, for tests and for a program that
// needs a command of its own.
package manager
