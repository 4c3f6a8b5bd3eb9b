// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import "testing"

// TestHolders checks who may take the Lease, and when.
func TestHolders(t *testing.T) {
	testLogs(t, map[string]logCase{
		"it is released": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "a"); l.takes(1001, "b") },
			figures{Leaderless: 1 * ms, Ends: []End{Released, Lasts}},
		},
		"it is expired": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(2000, "a"); l.takes(8000, "b") },
			figures{Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"it is about to expire": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(2000, "a"); l.takes(7999, "b") },
			figures{Overwrites: 1, Ends: []End{Overwritten, Lasts}},
		},
		"it expires by its own duration": {
			func(l *fakeLog) { l.lease(0, "a", "id-a", 3); l.takes(3000, "b"); l.takes(6000, "c") },
			figures{Overwrites: 1, Leaderless: 2 * ms, Ends: []End{Expired, Overwritten, Lasts}},
		},
		"another client edits it, which is not a renewal": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(2000, "admin", "id-a", 6); l.takes(6000, "b") },
			figures{Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"another client edits its duration": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(2000, "admin", "id-a", 60); l.takes(6000, "b") },
			figures{Overwrites: 1, Ends: []End{Overwritten, Lasts}},
		},
		"it is deleted": {
			func(l *fakeLog) { l.takes(0, "a"); l.deletes(1000, "admin"); l.takes(1001, "b") },
			figures{Leaderless: 1 * ms, Ends: []End{Edited, Lasts}},
		},
		"its deletion is not in the log": {
			func(l *fakeLog) { l.takes(0, "a"); l.uid++; l.takes(1000, "b") },
			figures{Leaderless: 2 * ms, Ends: []End{Edited, Lasts}},
		},
		"its deletion is not in the log, and its holder recreates it": {
			func(l *fakeLog) { l.takes(0, "a"); l.uid++; l.takes(1000, "a") },
			figures{Leaderless: 2 * ms, Ends: []End{Edited, Lasts}},
		},
		"a replica that does not hold it deletes it": {
			func(l *fakeLog) { l.takes(0, "a"); l.deletes(1000, "b"); l.takes(1001, "b") },
			figures{Overwrites: 1, Leaderless: 1 * ms, Ends: []End{Overwritten, Lasts}},
		},
		"an administrator empties it": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "admin", "", 6); l.takes(1001, "b") },
			figures{Leaderless: 1 * ms, Ends: []End{Edited, Lasts}},
		},
		"a replica that does not hold it empties it": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(6000, "b"); l.releases(7000, "a"); l.takes(7001, "c") },
			figures{Overwrites: 1, Leaderless: 3 * ms, Ends: []End{Expired, Overwritten, Lasts}},
		},
		"a replica empties an empty Lease": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "a"); l.releases(1001, "b"); l.takes(1002, "b") },
			figures{Leaderless: 2 * ms, Ends: []End{Released, Lasts}},
		},
		"an unknown holder's Lease is taken too early": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "admin", "usurper", 6); l.takes(6999, "a") },
			figures{Overwrites: 1, Leaderless: 5999 * ms, Ends: []End{Edited, Overwritten, Lasts}},
		},
		"an unknown holder's Lease is taken in time": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "admin", "usurper", 6); l.takes(7000, "a") },
			figures{Leaderless: 6000 * ms, Ends: []End{Edited, Expired, Lasts}},
		},
		"an administrator gives it to a replica, which accepts it": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.lease(1000, "admin", "id-b", 6)
				l.takes(1100, "b")
				l.writes(1102, "b")
			},
			figures{Writes: 1, Leaderless: 100 * ms, Ends: []End{Edited, Lasts}},
		},
		"two replicas share an identity": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "b", "id-a", 6) },
			figures{Overwrites: 1, Ends: []End{Overwritten, Lasts}},
		},
		"a replica restarts with its token": {
			func(l *fakeLog) { l.takes(0, "a"); changeLease(l.t, l.takes(5999, "a"), identity("id-a2")) },
			figures{Overwrites: 1, Ends: []End{Overwritten, Lasts}},
		},
		"a standby annotates it": {
			func(l *fakeLog) {
				changeLease(l.t, l.takes(0, "a"), renewed)
				changeLease(l.t, l.lease(1000, "b", "id-a", 6), renewed)
				l.takes(6001, "b")
			},
			figures{Leaderless: 3 * ms, Ends: []End{Expired, Lasts}},
		},
		"a write of it is rejected": {
			func(l *fakeLog) { l.takes(0, "a"); refuse(l.takes(1000, "b")) },
			figures{Ends: []End{Lasts}},
		},
		"another Lease": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(1000, "b").ObjectRef.Name = "other" },
			figures{Ends: []End{Lasts}},
		},
		"a Lease of the same name in another namespace": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(1000, "b").ObjectRef.Namespace = "other" },
			figures{Ends: []End{Lasts}},
		},
		"answers come in another order than commits": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.releases(1000, "a")
				l.takes(1001, "b")
				n := len(l.events)
				l.events[n-2], l.events[n-1] = l.events[n-1], l.events[n-2]
			},
			figures{Leaderless: 1 * ms, Ends: []End{Released, Lasts}},
		},
		"the release is answered after another replica has taken it": {
			func(l *fakeLog) {
				l.takes(0, "a")
				release := l.releases(1000, "a")
				release.StageTimestamp.Time = release.StageTimestamp.Add(100 * ms)
				l.takes(1050, "b")
			},
			figures{Ends: []End{Released, Lasts}},
		},
	})
}
