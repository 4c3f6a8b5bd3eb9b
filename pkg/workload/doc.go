// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload manages one Deployment for each owner object, a Foo or an Icecream.
//
// [Controller] is the controller of one kind. A [Kind] adapts it to that kind.
//
// [Decide] makes the decision. It is a pure function of the owner and of the cached
// Deployments. [Reconciler.Reconcile] reads the cache, carries out the decision with at
// most one write, and returns the resulting state. [NewStatus], also a pure function,
// computes the owner's status from that state.
//
// The controller keeps the fields that the owner declares: replicas and image, if they
// are set. Everything else about the Deployment is left to others once it is created, so
// a write contains only the fields that differ. It also carries the resourceVersion of
// the Deployment that the decision was based on, so that the API server refuses a
// decision made on a stale cache.
//
// An owner owns a Deployment if and only if the Deployment's controller owner reference
// has the owner's UID. Other Deployments are never touched, even if they have the name
// in the spec. No Deployment is ever deleted.
//
// # A new name
//
// After a change of the name in the spec, the new Deployment is created as for a new owner.
// While the owner has none of that name, the newest former one is reported and corrected:
// see [Owner.Reported]. From then on former ones are named in the status, and not written.
//
// # Writes that fail
//
// A write that a quota, a policy or a webhook denies is reported at once. Any other error
// is returned to the loop, and reported only when it has lasted: see failures. A missing
// permission is never reported for an owner, because it is about the controller.
//
// # When it writes
//
// The controller writes only if something differs, and at most once per sync to each
// object. The exception is a status write that conflicts with an unrelated change, which
// is retried once. Drift is corrected because Deployments are watched, not by resyncs:
// updates with an unchanged resourceVersion are ignored unless the informers have a
// resync period.
//
// A change of the status to or from Ready or Stalled is written at once, progress a second
// later, and neither more often than [samplecontroller.io/controller-manager/reconcile.Pace]
// allows. An Event is recorded together with the status that it is about.
//
// If the API server refuses the status, nothing in it can say so: see [StatusRefusals].
//
// # A new leader
//
// The cache of owners may be behind the cache of Deployments. A new leader could then
// mistake what its predecessor did for a newer version of an owner for drift, or a
// renamed Deployment for a missing one. So before the first write for an owner in a
// term, which is one call of [Controller.Run], the controller reads the owner from the
// API server. If its spec differs from the cached one, nothing is written until the
// cache has caught up.
//
// That answer also has the resourceVersion up to which the cache must get to contain
// everything from before the term. Once it does, which the next event of any owner
// shows, owners are no longer read. A term in which nothing differs reads nothing. The
// owner is also read before each creation for an owner that already had a Deployment.
//
// # Objects that cannot be decoded
//
// An object that was stored before validation was tightened may not fit its type. Its
// spec is unknown, so neither the object nor its Deployment is written. It is reported
// by an Event and in the log, once per version, and counted in a metric.
//
// # Deletion
//
// Nothing is created or changed for an object that is being deleted. The garbage
// collector deletes its Deployment through the owner reference. While a finalizer holds
// the object, its status continues to report the Deployment. It is then Reconciling with
// reason Terminating, never Ready. The cache may see the deletion of the Deployment
// before that of the object. So the object is read from the API server before another
// Deployment is created for one that already had one.
package workload
