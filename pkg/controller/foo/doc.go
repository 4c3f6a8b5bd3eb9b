// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foo is foo-controller: it keeps the Deployment that each Foo names, and
// writes into the Foo's status what has become of it.
//
//	controller.go  what wakes it
//	sync.go        what it does for one Foo
//	status.go      what a Foo's status says (pure)
//
// How a Deployment is kept is in
// [samplecontroller.io/sample-controller-manager/pkg/workload], which serves
// every kind that keeps one.
//
// # When it writes
//
// Only when something differs, and never twice in one sync to one object. Updates
// that leave the resourceVersion as it was, as a resync sends them, do not reach
// it unless the informers were given a resync period: drift is healed because the
// Deployments are watched.
//
// # What cannot be decoded
//
// A Foo that was stored before validation was tightened may not fit its type.
// What it wants is not known, so neither it nor its Deployment is written; it is
// reported by an Event and in the log, once in each version, and counted.
//
// # Deletion
//
// A Foo that is being deleted gets nothing new. Its Deployment goes by garbage
// collection, through the owner reference.
package foo
