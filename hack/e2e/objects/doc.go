// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects tests what a user sees of Foos and Icecreams: Deployments, replicas,
// renames, deletion, conflicts, statuses and placements.
//
// README.md says what each file shows.
package objects
