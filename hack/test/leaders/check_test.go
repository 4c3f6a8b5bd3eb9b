// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leaders

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// figures are the parts of a report that tests compare.
type figures struct {
	Writes, Outside, AfterRelease, Overwrites int
	Held, Refused, AfterExpiry, AfterEdit     int
	Dual, Leaderless, Notice                  time.Duration
	Ends                                      []End
}

func figuresOf(r *Report) figures {
	f := figures{
		Writes:  r.Writes,
		Outside: r.Count(WriteOutsideTerm), AfterRelease: r.Count(WriteAfterRelease), Overwrites: r.Count(Overwrite),
		Held: len(r.Held), Refused: r.Refused, AfterExpiry: r.AfterExpiry, AfterEdit: r.AfterEdit,
		Dual: r.DualWindow, Leaderless: r.Leaderless, Notice: r.Notice,
	}
	for _, e := range r.Epochs {
		f.Ends = append(f.Ends, e.End)
	}
	return f
}

const ms = time.Millisecond

// logCase is an audit log and the expected report.
type logCase struct {
	log  func(l *fakeLog)
	want figures
}

func testLogs(t *testing.T, cases map[string]logCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &fakeLog{t: t}
			tc.log(l)
			r := l.check()
			if diff := cmp.Diff(tc.want, figuresOf(r), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, r)
			}
		})
	}
}

// TestIncompleteLogIsAnError checks that Check returns an error, not an empty report, if it
// cannot judge.
func TestIncompleteLogIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(l *fakeLog, event *auditv1.Event)
		want  string
	}{
		"Lease without body": {func(_ *fakeLog, e *auditv1.Event) { e.ResponseObject = nil }, "has no body"},
		"versions": {func(l *fakeLog, e *auditv1.Event) {
			changeLease(l.t, e, func(l *coordinationv1.Lease) { l.ResourceVersion = "" })
		}, "parsing"},
		"Lease without credential": {func(_ *fakeLog, e *auditv1.Event) { e.User.Extra = nil }, "has no credential of system:serviceaccount:system:leader"},
		"write without credential": {func(l *fakeLog, _ *auditv1.Event) { l.writes(1, "a").User.Extra = nil }, "reading patch configmaps system/x: the audit log has no credential"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLog{t: t}
			tc.spoil(l, l.takes(0, "a"))
			_, err := Check(l.events, Options{Lease: lease, Replica: ServiceAccount("system", "leader")})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestWrites checks when a replica may write. Each allowed write has a counterpart, a
// millisecond away, that is not allowed.
func TestWrites(t *testing.T) {
	testLogs(t, map[string]logCase{
		"in its term": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(2, "a"); l.takes(5000, "a"); l.writes(10999, "a") },
			figures{Writes: 2, Ends: []End{Lasts}},
		},
		"before it held the Lease": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(1, "a") },
			figures{Writes: 1, Outside: 1, Ends: []End{Lasts}},
		},
		"by a replica that never held it": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(100, "b") },
			figures{Writes: 1, Outside: 1, Ends: []End{Lasts}},
		},
		"by a replica that never held it, without any Lease": {
			func(l *fakeLog) { l.writes(100, "b") },
			figures{Writes: 1, Outside: 1},
		},
		"before the next leader's Lease is committed": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(6000, "b"); l.writes(6002, "a") },
			figures{Writes: 1, AfterExpiry: 1, Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"after the next leader's Lease was committed": {
			func(l *fakeLog) { l.takes(0, "a"); l.takes(6000, "b"); l.writes(6003, "a"); l.writes(6102, "a") },
			figures{Writes: 2, Outside: 2, Dual: 100 * ms, Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"of both replicas, as the Lease goes back and forth": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.takes(6000, "b")
				l.writes(6100, "b")
				l.releases(6200, "b")
				l.takes(6300, "a")
				l.writes(6400, "a")
				l.writes(6500, "b")
			},
			figures{Writes: 3, AfterRelease: 1, Dual: 198 * ms, Leaderless: 102 * ms, Ends: []End{Expired, Released, Lasts}},
		},
		"up to its release": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "a"); l.writes(1002, "a") },
			figures{Writes: 1, Ends: []End{Released}},
		},
		"after its release": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "a"); l.writes(1003, "a") },
			figures{Writes: 1, AfterRelease: 1, Ends: []End{Released}},
		},
		"after its release by deletion": {
			func(l *fakeLog) { l.takes(0, "a"); l.deletes(1000, "a"); l.writes(1003, "a") },
			figures{Writes: 1, AfterRelease: 1, Ends: []End{Released}},
		},
		"after its release, when it holds the Lease again": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "a"); l.takes(2000, "a"); l.writes(2002, "a") },
			figures{Writes: 1, Leaderless: 1000 * ms, Ends: []End{Released, Lasts}},
		},
		"after it expired, before another replica took it": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(6000, "a"); l.writes(6001, "a") },
			figures{Writes: 2, AfterExpiry: 1, Ends: []End{Lasts}},
		},
		"after a late renewal": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(7000, "a"); l.takes(8000, "a"); l.writes(8100, "a") },
			figures{Writes: 2, AfterExpiry: 1, Ends: []End{Lasts}},
		},
		"after an administrator emptied its Lease, and after another replica took it": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.lease(1000, "admin", "", 6)
				l.writes(1002, "a")
				l.writes(1042, "a")
				l.takes(1100, "b")
				l.writes(1112, "a")
			},
			figures{Writes: 3, AfterEdit: 1, Notice: 40 * ms, Outside: 1, Dual: 10 * ms, Leaderless: 100 * ms,
				Ends: []End{Edited, Lasts}},
		},
		"after an administrator deleted its Lease": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.deletes(1000, "admin")
				l.writes(1012, "a")
				l.takes(2000, "a")
				l.writes(2002, "a")
			},
			figures{Writes: 2, AfterEdit: 1, Notice: 10 * ms, Leaderless: 1000 * ms, Ends: []End{Edited, Lasts}},
		},
		"after an administrator gave its Lease to a stranger": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "admin", "usurper", 6); l.writes(1012, "a") },
			figures{Writes: 1, AfterEdit: 1, Notice: 10 * ms, Ends: []End{Edited, Lasts}},
		},
		"after an edit that leaves the holder": {
			func(l *fakeLog) { l.takes(0, "a"); l.lease(1000, "admin", "id-a", 6); l.writes(5999, "a") },
			figures{Writes: 1, Ends: []End{Lasts}},
		},
		"after another replica emptied its Lease": {
			func(l *fakeLog) { l.takes(0, "a"); l.releases(1000, "b"); l.writes(1012, "a") },
			figures{Writes: 1, AfterEdit: 1, Notice: 10 * ms, Overwrites: 1, Ends: []End{Overwritten}},
		},
		"delayed in transit": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.heldWrites(100, 200, "a")
				l.takes(6000, "b")
				l.heldWrites(6000, 7000, "a")
				refuse(l.heldWrites(6000, 7001, "a"))
				l.writes(7003, "a")
			},
			figures{Writes: 3, Held: 2, Outside: 1, Dual: 1001 * ms, Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"delayed in transit, but sent late": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.takes(6010, "b")
				l.heldWrites(6001, 7000, "a") // expired, if not yet taken
				l.heldWrites(6013, 7001, "a")
			},
			figures{Writes: 2, Outside: 2, Dual: 989 * ms, Leaderless: 12 * ms, Ends: []End{Expired, Lasts}},
		},
		"refused": {
			func(l *fakeLog) {
				l.takes(0, "a")
				refuse(l.writes(100, "a"))
				l.takes(6000, "b")
				refuse(l.writes(6003, "a"))
			},
			figures{Refused: 1, Leaderless: 2 * ms, Ends: []End{Expired, Lasts}},
		},
		"rejected, after it expired": {
			func(l *fakeLog) { l.takes(0, "a"); refuse(l.writes(6001, "a")) },
			figures{Ends: []End{Lasts}},
		},
		"answered in another order than received": {
			func(l *fakeLog) {
				l.takes(0, "a")
				l.deletes(1000, "admin")
				l.writes(1042, "a")
				l.writes(1012, "a")
				l.takes(1100, "b")
				l.writes(1142, "a")
				l.writes(1112, "a")
			},
			figures{Writes: 4, AfterEdit: 2, Notice: 40 * ms, Outside: 2, Dual: 40 * ms, Leaderless: 100 * ms,
				Ends: []End{Edited, Lasts}},
		},
		"of another user": {
			func(l *fakeLog) { l.takes(0, "a"); l.writes(1000, "admin") },
			figures{Ends: []End{Lasts}},
		},
		"that needs no term": {
			func(l *fakeLog) {
				l.add(0, "a", "create", "", "events", "x", nil)
				l.add(0, "a", "create", "events.k8s.io", "events", "x", nil)
				l.add(0, "a", "create", "authentication.k8s.io", "tokenreviews", "x", nil)
				l.add(0, "a", "create", "authorization.k8s.io", "subjectaccessreviews", "x", nil)
				l.add(0, "a", "update", "coordination.k8s.io", "leases", "another", nil)
				l.add(0, "a", "get", "", "configmaps", "x", nil)
			},
			figures{},
		},
		"that is a dry run": {
			func(l *fakeLog) { l.add(0, "a", "update", "", "configmaps", "x", nil).RequestURI = "/x?dryRun=All" },
			figures{},
		},
		"of each verb": {
			func(l *fakeLog) {
				for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
					l.add(0, "a", verb, "", "configmaps", "x", nil)
				}
			},
			figures{Writes: 5, Outside: 5},
		},
	})
}
