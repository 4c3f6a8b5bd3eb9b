// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload manages one Deployment for each owner object, a Foo or an Icecream.
//
// An [Adapter] describes a kind of owner, and [New] makes its controller. The controller is a function
// from an owner to what should be: it keeps the Deployment, then writes the status. [decide] and
// [NewStatus] are pure functions: what to do for an owner, given its cached Deployments, and what
// its status says.
//
// The controller keeps the fields that the owner declares: replicas and image, if they
// are set. Everything else about the Deployment is left to others once it is created.
//
// An owner owns a Deployment if and only if the Deployment's controller owner reference
// has the owner's UID. Other Deployments are never touched, even if they have the name
// in the spec. No Deployment is ever deleted.
//
// Package [samplecontroller.io/controller-manager/controller] guarantees the rest: a write contains only
// what differs, with the resourceVersion that it was decided on; a new leader confirms that
// its cache of owners is not behind; a write that keeps failing is reported by an Event and retried
// with backoff; an owner that cannot be decoded is reported, and left alone.
//
// # A new name
//
// After a change of the name in the spec, the new Deployment is created as for a new owner.
// While the owner has none of that name, the newest former one is reported and corrected:
// see [Owner.Reported]. From then on former ones are named in the status, and not written.
//
// # Writes that fail
//
// The status reports a write that fails as a [samplecontroller.io/controller-manager/controller.Failure]:
// at once if a quota, a policy or a webhook denies it, or the API server its contents, else when it has
// lasted. An owner whose status reports it does not count as failing. If several fields differ and are
// denied together, each is tried by itself. A missing permission is never reported for an owner, because
// it is about the controller.
//
// # When it writes
//
// The controller writes only if something differs, and at most once per call to each
// object. Drift is corrected because Deployments are watched, not by resyncs.
//
// A change of the status to or from Ready or Stalled is written at once, progress a second
// later, and neither more often than [samplecontroller.io/controller-manager/controller.Builder.Paced]
// allows. An Event is recorded together with the status that it is about.
//
// # Deletion
//
// Nothing is created or changed for an object that is being deleted. The garbage
// collector deletes its Deployment through the owner reference. While a finalizer holds
// the object, its status continues to report the Deployment. It is then Reconciling with
// reason Terminating, never Ready.
package workload
