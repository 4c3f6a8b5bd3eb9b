// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the packages of this module together to a process.
//
// [Run] keeps the order of start and stop, which is what is easily got wrong:
//
//  1. The server starts first and stops last, so probes and metrics answer
//     through all that follows.
//  2. Informers start next, on standbys too, so that a new leader begins with
//     full caches.
//  3. Controllers run while the process leads. When it is told to end they finish
//     what they are at; only then is the Lease released; then informers stop.
//
// What the process is doing, it tells by its probes, in /statusz, and at
// /debug/controllers: see package debug.
//
// [Options] holds the flags of every controller manager and of its controllers, and
// [NewCommand] makes the command. A program that needs another command calls [Run] itself.
package manager
