// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package icecream is icecream-controller: it keeps the Deployment that each Icecream
// names, writes into the Icecream's status what has become of it, and logs the node
// that each of its Pods is placed on.
//
//	controller.go  what enqueues it
//	kind.go        what an Icecream wants, and how its status is compared and written
//	placement.go   which placements there are, and which are recorded (pure)
//	log.go         the line for each placement, before it is recorded
//
// How a Deployment is kept is in
// [samplecontroller.io/sample-controller-manager/pkg/workload], which serves every
// kind that keeps one.
//
// # Placements
//
// The line is logged first, then the placement is recorded in status.placements, so
// that none is lost. What the cached status records is not logged. The newest 500 are
// recorded. A record stays as long as the cache has its Pod, also while the owner chain does
// not lead from the Pod to the Icecream: the chain may be restored.
//
// A process remembers what it has logged and the status does not record: Pods beyond the
// newest 500, Pods whose record was refused, and Pods that left the cache, which may only
// have lost their label. Another process knows neither these nor a record that its cache
// does not have yet, and in doubt it logs again. So the line of each Pod comes at least
// once, and just once while the record is whole. After a change of leader, an Icecream of
// 1,500 Pods has 1,000 lines again, and one Event.
//
// To compare times with the oldest record instead would lose Pods: clocks of API servers
// differ, many Pods are placed in one second, and a ReplicaSet that is adopted brings
// older Pods.
package icecream
