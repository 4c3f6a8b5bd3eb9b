// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllermanager is the root of a library for controller managers: processes that
// host several controllers on shared informers, with leader election. It contains no code. The
// packages below it are used together, through package manager. README.md shows a
// whole program.
//
//   - managertest runs a program in tests.
//   - manager has the program: its command, flags, and the order of start and stop.
//   - debug shows what each controller is doing, or why it is idle, as text and as JSON. A client uses it
//     to read the JSON.
//   - controller builds controllers from what they declare, describes them as data, and selects the
//     enabled ones.
//   - reconcile is the worker loop of every controller, for those who want the key and client-go alone.
//   - informers has the informers of the process, one per resource. An informer waits, and reports it,
//     while its resource is missing or may not be read.
//   - tolerant has clients for which an object that cannot be decoded does not block others.
//
// What only the library uses is in internal, for example:
//
//   - options has the flags of the process, their validation, and the resulting configuration.
//   - supervisor runs each controller separately for a term, restarts failed ones, and reports their
//     state.
//   - leadership has terms by a Lease, which is released after the last write, and the gate that only
//     writes of the leader pass.
//   - writes counts the writes of each controller, and lists missing permissions.
//   - plan makes each write of a process a dry run, and records what would change.
//   - server serves HTTPS with probes, metrics and debugging endpoints, with delegated authentication
//     and authorization.
//
// Packages import only downward: managertest, then manager, then options, supervisor and debug, then
// controller, then the rest. No package depends on your API, clients or listers.
package controllermanager
