// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podrecord holds what the controllers need to know of Pods, and little
// more: a cache of whole Pods would be thirty times as large.
//
// A [Record] is what is left of a Pod. An informer of Pods holds them that is given the
// [Selector], [Indexers] and [Transform]. Whom a Pod is there for is told by package
// ownership.
package podrecord
