// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership gives a process terms of leadership by a Lease.
//
//	err = election.Run(ctx, func(term *leadership.Term) error {
//		fmt.Println("leading")
//		stop() // as a signal would
//		<-term.Ctx.Done()
//		fmt.Println("drained")
//		return nil
//	})
//	fmt.Println("released:", err == nil)
//
// [Election.Run] campaigns and, once it leads, calls the work with a [Term]. At
// the end of a term first the work is told to stop and drains, then the [Gate]
// closes, then the elector stops renewing, then the Lease is released. So a
// successor begins only after the last write. A term that is lost, because the
// Lease could not be renewed in time, is gone or has another holder, closes the
// gate first; the process then drains, keeps its caches and campaigns again.
//
// The Gate is a http.RoundTripper around the clients with which the work writes.
// Without a valid term it refuses a write before it is sent, also if the work
// ignores its context. A term is valid for
//
//	LeaseDuration - WriteTimeout - min(1s, LeaseDuration/10)
//
// after its last renewal was sent, by the monotonic clock of this process: a write
// that passes the gate has been answered, or given up, before anybody else may
// take the Lease.
//
// A standby watches the Lease. It takes one that is released at once, and one that
// is not renewed when its duration has passed since the standby saw it change; it
// never polls.
//
// A leader that cannot do its work hands over, by annotations of the Lease, to a standby
// that can: see [Election.AssessBy].
//
// What is not guaranteed: a process that is suspended in the instant between the
// gate and the network may still send that one write when it wakes, and the API
// server may commit later what it has received. So writes should carry the
// resourceVersion that they were computed from. The monotonic clock stands still
// while a virtual machine is suspended.
//
// Nor does a term say how far the caches of the new leader have come. They may be behind
// what the one before has decided on, each by itself: what is written from one of them to
// an object from another should be preceded, once in a term, by a look at the API server.
//
// Underneath is the elector of k8s.io/client-go/tools/leaderelection, whose
// metrics and rules are kept, on a resourcelock.Interface of this package.
package leadership
