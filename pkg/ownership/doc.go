// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership follows controller owner references through the caches, from a
// Pod up to the object that it is there for, and from that down to its Pods:
//
//	Pod -> ReplicaSet -> Deployment -> Foo or Icecream
//
// Each step is by UID and within one namespace. Labels prove nothing: anybody can
// put them on a Pod.
package ownership
