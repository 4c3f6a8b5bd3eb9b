// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload keeps one Deployment for an owner object, a Foo or an
// Icecream.
//
// [Controller] is the controller of either kind: what enqueues it, and what it does for
// one object. What the kinds have of their own they say by a [Kind].
//
// [Decide] is the decision: a pure function of the owner and of what the cache
// holds under the wanted name. [Reconciler.Reconcile] reads the cache, carries the
// decision out with at most one write, and reports what is there. [NewStatus]
// is, again purely, what the owner's status says of it.
//
// What the owner declares is kept: replicas and image, where it sets them.
// Everything else about the Deployment belongs to others once it is created, so
// writes are of just the fields that differ. Each carries
// the resourceVersion of the Deployment that it was decided on: a decision made
// on a stale cache is refused by the API server.
//
// A Deployment is the owner's if, and only if, its controller owner reference
// has the owner's UID. Any other of the wanted name is never touched.
//
// # When it writes
//
// Only when something differs, and never twice in one sync to one object, but for a
// status that a mere touch has refused. Updates that leave the resourceVersion as it
// was, as a resync sends them, do not reach it unless the informers were given a
// resync period: drift is healed because the Deployments are watched.
//
// # A new leader
//
// The cache of owners may be behind that of Deployments. To a process that has just
// come to lead, what the one before has done for a newer version of an owner would then
// be drift, and a Deployment that it has renamed away would be missing. So before the first
// write for an owner in a term, that is one call of [Controller.Run], the API server is asked
// for the owner once: if it wants
// something else than cached, nothing is written until the cache has caught up. The
// answer also tells how far the cache has to come to have all from before the term. Once
// it has, which the next event of any owner shows, no more owners are asked for. A term
// in which nothing differs asks for nothing. The same look comes before each deletion, and
// each time before a Deployment is created for an owner that has had one.
//
// # What cannot be decoded
//
// An object that was stored before validation was tightened may not fit its type. What
// it wants is not known, so neither it nor its Deployment is written; it is reported
// by an Event and in the log, once in each version, and counted.
//
// # Deletion
//
// For an object that is being deleted nothing is created, changed or deleted. Its
// Deployment goes by garbage collection, through the owner reference. While a finalizer
// holds the object, its status goes on to report the Deployment; it is Reconciling for
// Terminating, never Ready. The cache may know of that before it knows
// that the object is gone, so one that had a Deployment is looked at once more before
// another is made.
package workload
