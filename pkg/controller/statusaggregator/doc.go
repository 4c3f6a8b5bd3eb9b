// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statusaggregator is status-aggregator-controller. It writes a summary of the
// Pods of each Foo and Icecream into the object's status.
//
//	controller.go  which events enqueue an object
//	sync.go        how one object is synced
//	summary.go     the summary of the Pods (pure)
//	kinds.go       how the summary of each kind is read and written
//
// # When it writes
//
// The controller writes if the summary differs from that in the status. The first change is
// written at once, later ones at most once per interval, and the latest state is always
// written in the end: see [samplecontroller.io/controller-manager/reconcile.Pace]. An object
// is throttled while it is written and for the interval after that: changes do not enqueue
// it, and it is synced once when the interval is over. After that, a change of a Pod
// enqueues its object at once again. The cost of a sync grows with the number of Pods, even
// if it writes nothing. Nothing is written merely to record that an object was synced.
//
// After an object is created or its spec changes, its Pods have a grace period of one
// interval to change. Only then does the status report that there are none, or that the
// summary also holds for the new generation: that is only progress. So a change of a spec
// usually costs no write of its own.
//
// # Sharing the status
//
// Two controllers write the status by server-side apply, each with fields of its own. Both
// work from a cache that has the writes of the other:
// [samplecontroller.io/controller-manager/reconcile.ConsistencyStore].
package statusaggregator
