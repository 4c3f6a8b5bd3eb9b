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
// [Program.Flags] returns the flags.
//
// The subcommand controllers lists the controllers; rbac prints the roles that follow from what they
// declare; preflight checks in a cluster that the program would run: permissions, the APIs in the versions
// that the controllers read, the namespace and the Lease.
//
// # More than controllers
//
// A controller is a function from an object to what should be: see package controller. Package manager
// adds what belongs to a process. A metric of the program is a package-level variable of
// k8s.io/component-base/metrics that is registered once with legacyregistry.MustRegister, because a
// constructor runs once in each test. Flags of a controller are in its Descriptor.
//
// --version, the log and the user agents show the version and commit that the go command recorded for
// the main module. To set another one, pass
// -ldflags "-X k8s.io/component-base/version.gitVersion=v1.2.3", and likewise gitCommit, gitTreeState and
// buildDate. The metric kubernetes_build_info shows only these.
//
// [NewCommand] and [Execute] are the steps of Main. They are for tests, and for
// programs that need their own command.
package manager
