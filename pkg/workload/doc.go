// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload keeps one Deployment for a parent object, a Foo or an
// Icecream.
//
// [Decide] is the decision: a pure function of the parent and of what the cache
// holds under the wanted name. [Keeper.Keep] reads the cache, carries the
// decision out with at most one write, and reports what is there. [NewStatus]
// is, again purely, what the parent's status says of it.
//
// What the parent declares is kept: replicas and image, where it sets them.
// Everything else about the Deployment belongs to others once it is created, so
// writes are strategic merge patches of just the fields that differ. Each carries
// the resourceVersion of the Deployment that it was decided on: a decision made
// on a stale cache is refused by the API server.
//
// A Deployment is the parent's if, and only if, its controller owner reference
// has the parent's UID. Any other of the wanted name is never touched.
package workload
