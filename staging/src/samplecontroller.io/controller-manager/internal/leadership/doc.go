// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership elects a leader among processes through a Lease, one term at a time.
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
// [Election.Run] campaigns and calls the work with a [Term] once it leads. A term ends in
// four steps: the work is told to stop and drains, the [Gate] closes, the elector stops
// renewing, and the Lease is released. So a successor starts only after the last write.
//
// A term is lost if the Lease could not be renewed in time, was deleted, or has another
// holder. A lost term closes the gate first. The process then drains, keeps its caches and
// campaigns again.
//
// The Gate is an http.RoundTripper around the clients that the work writes with. Without a
// valid term it refuses a write before it is sent, even if the work ignores its context. A
// term is valid for
//
//	LeaseDuration - WriteTimeout - min(1s, LeaseDuration/10)
//
// after its last renewal was sent, by the monotonic clock of this process. So a write that
// passes the gate is answered or given up before another process may take the Lease. That also
// holds for the longer second try of a write that timed out: see [Gate.Wrap].
//
// A standby watches the Lease. It takes a released Lease at once. It takes a Lease that is not
// renewed when the Lease duration has passed since the last change. About every 15 seconds it
// tries a dry run of an update, so that it knows before whether it could: see
// [Election.CheckLease].
//
// A leader that cannot do its work hands over to a standby that can, through annotations
// of the Lease: see [Election.AssessBy].
//
// Limits of the guarantee: a process that is suspended between the gate and the network may
// send that one write when it resumes. The API server may commit a write some time after it
// received it. So writes should carry the resourceVersion that they were computed from. The
// monotonic clock stands still while a virtual machine is suspended.
//
// A new leader's caches may be behind what the previous leader saw, each by a different
// amount. Before a controller writes to one object based on the cache of another, it should
// read from the API server once in each term.
//
// The package uses the elector of k8s.io/client-go/tools/leaderelection, with its metrics
// and rules, on a resourcelock.Interface of its own.
package leadership
