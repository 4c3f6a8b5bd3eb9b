// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statusaggregator is status-aggregator-controller: it writes into the status
// of each Foo and each Icecream what its Pods say.
//
//	controller.go  what enqueues it
//	sync.go        what it does for one object
//	pace.go        when it may be written
//	summary.go     what the Pods say (pure)
//	kinds.go       how it is read from, and written to, each kind
//
// # When it writes
//
// When the summary differs from what the status has: the first time at once, then at
// most once in each interval, and always the last state. While it is written and for the
// interval after that an object is throttled: changes do not enqueue it, and it is synced once
// when the interval is over. Then a Pod that changes enqueues its object at once again. A sync
// costs as much as the object has Pods, even if it writes nothing. Nothing is written just to
// say when the object was synced.
//
// The Pods of a new object, or of one with a new generation, are given one interval to
// change before the status says that there are none, or that the same is true of the new
// generation. So a change of a spec usually costs no write of its own.
//
// # Side by side with the owner
//
// The status belongs to two controllers, each with fields of its own, by server-side
// apply. Both work from a cache that has seen what the other has written:
// [samplecontroller.io/controller-manager/reconcile.ConsistencyStore].
package statusaggregator
