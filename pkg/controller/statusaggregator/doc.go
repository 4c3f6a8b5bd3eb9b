// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statusaggregator is status-aggregator-controller. It writes a summary of the
// Pods of each Foo and Icecream into the object's status.
//
//	descriptor.go  its flag, and the kinds that it serves
//	controller.go  the events that enqueue an object, and the status write
//	summary.go     the summary of the Pods (pure)
//
// # When it writes
//
// The controller writes if the summary differs from that in the status. The first change is
// written at once, later ones at most once per interval, and the latest state is always
// written in the end: see [samplecontroller.io/controller-manager/controller.Builder.Paced]. While an
// object is throttled after a write, events of its Pods do not enqueue it, and it is summarized once
// when the interval is over. The cost of a summary grows with the number of Pods, even if nothing is
// written. Nothing is written merely to record that an object was synced.
//
// After an object is created or its spec changes, its Pods have a grace period of one
// interval to change. Only then does the status report that there are none, or that the
// summary also holds for the new generation: that is only progress. So a change of a spec
// usually costs no write of its own. A change of the Pods may follow such a write at once.
//
// # Sharing the status
//
// Two controllers write the status. Each writes a JSON patch of its own fields, bound to the
// version that the other has written.
package statusaggregator
