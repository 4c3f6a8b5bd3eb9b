// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership gives a process terms of leadership by a Lease.
//
// [Election.Run] campaigns and, once it leads, calls the work with a [Term].
// The order at the end of a term is what the package is for: first the work is
// told to stop and drains, then the elector stops renewing, then the Lease is
// released. While the work drains the Lease is kept, so no other process can
// lead beside it; and the Lease is released only by compare-and-swap on what was
// read, so that of another holder is never erased.
//
// A term that is lost, because the Lease could not be renewed in time or another
// process holds it, ends with [ErrLost] once the work has drained. Nothing is
// released then.
//
// Underneath is the elector of k8s.io/client-go/tools/leaderelection, whose
// metrics, Events and log lines are kept. Its guarantee is its own: it does not
// fence, so a process that is suspended for longer than the lease may still have
// a write on its way when it wakes.
package leadership
