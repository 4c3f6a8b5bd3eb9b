// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownership follows controller owner references through the caches, in both
// directions:
//
//	Pod -> ReplicaSet -> Deployment -> Foo or Icecream
//
// Each step compares UIDs within one namespace. Labels prove nothing: anybody can set them
// on a Pod.
package ownership
