// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podrecord caches the few facts about Pods that the controllers need. A cache of
// whole Pods would be thirty times as large.
//
// A [Record] has the facts about one Pod. An informer of Pods holds records if it has the
// [Selector], [Indexers] and [Transform]. Package ownership finds the object that a Pod
// belongs to.
package podrecord
