// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package icecream is icecream-controller. It manages the Deployment that each Icecream
// names, reports its state in the Icecream's status, and logs the node that each of its
// Pods is placed on.
//
//	icecream.go    the kind, and which events enqueue an Icecream
//	placements.go  the records of placements in its status
//	placement.go   which placements exist, and which are recorded (pure)
//	log.go         the log line of each placement, before it is recorded
//
// The Deployment is managed by
// [samplecontroller.io/sample-controller-manager/pkg/workload], which all kinds that
// manage a Deployment share.
//
// # Placements
//
// A placement is first logged, then recorded in status.placements, so that none is lost.
// A placement that the cached status records is not logged. The newest 500 are recorded.
// A record is kept while its Pod is being deleted, and as long as the cache has the Pod, even
// while the owner chain does not lead from the Pod to the Icecream: the chain may be restored.
//
// A finished Pod has no record: hundreds of evicted Pods would leave no room for those that
// run. So a sync cannot know whether an earlier leader logged it, and logs it only if an event
// has shown the Pod finish since the last sync. A Pod that finished before this leader saw it
// is not logged. A Pod that finishes or goes is noted at its event, and logged by the next sync,
// unless that knows that it was logged. Notes end with the term of the leader, and with the Icecream.
// An Icecream has at most 10,000 of them.
//
// A process remembers which placements it has logged but the status does not record:
// Pods beyond the newest 500, Pods whose record was refused, and Pods that finished or left
// the cache, perhaps only because they lost their label. Another process does not know these,
// nor records that its cache does not have yet, and logs those that still run again. So each
// Pod has at least one line, unless it finished while there was no leader or before its leader
// could sync the Icecream, or left before the cache had its owner chain, and exactly one while the
// status is complete. After a change of leader, an Icecream of 1,500 Pods gets 1,000
// lines again, and one Event.
//
// Comparing times with the oldest record instead would lose Pods: the clocks of API
// servers differ, many Pods are placed in the same second, and an adopted ReplicaSet
// brings older Pods.
package icecream
