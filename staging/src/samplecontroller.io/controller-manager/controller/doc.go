// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller says what a controller is, describes controllers as data,
// and decides which of them are enabled.
//
// A [Controller] is made once and run once for each term of leadership. A
// [Descriptor] tells all about it that can be told without making it: its name
// and aliases, how it is made, its flags, what it needs. A [Registry] is the controller map
// of a program. Help texts, selection by flag and RBAC manifests come from it
// alone, without a cluster.
//
// A constructor gets a [Context], which is bound to its controller: configs for clients
// whose writes pass only while the process leads and are counted, the informers of the
// process, a recorder of Events, and loops with the settings of the program. What the
// controllers of a process share is a [Process], which package manager makes.
//
// [For], [Owns] and [Kind.Sync] are for what most controllers do: own objects and write a
// status. A controller of another shape is a [Context.Loop], or whatever it likes to be.
package controller
