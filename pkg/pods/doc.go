// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods caches the few facts about Pods that the controllers need, and follows controller owner
// references through the caches, in both directions:
//
//	Pod -> ReplicaSet -> Deployment -> Foo or Icecream
//
// A cache of whole Pods would be thirty times as large as one of [Record]s. A [Chain] watches the Pods below
// the objects of a controller. Each step compares UIDs within one namespace. Labels prove nothing: anybody can
// set them on a Pod.
package pods
