// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package icecream is icecream-controller: it keeps the Deployment that each Icecream
// names, writes into the Icecream's status what has become of it, and logs the node
// that each of its Pods is placed on.
//
//	controller.go  what wakes it
//	kind.go        what an Icecream wants, and how its status is compared and written
//	placement.go   which placements are recorded, and which are new (pure)
//	log.go         the line for each placement, before it is recorded
//
// How a Deployment is kept is in
// [samplecontroller.io/sample-controller-manager/pkg/workload], which serves every
// kind that keeps one.
//
// # Placements
//
// The line is logged first, then the placement is recorded in status.placements, so
// that none is lost. What is recorded is never logged again, by whichever process.
// A process that ends between line and record leaves the line to be logged once more
// by the next; one whose write is refused remembers that it has logged it.
//
// The newest 500 are recorded. While more Pods than that exist, one that is older
// than the oldest record counts as recorded.
package icecream
