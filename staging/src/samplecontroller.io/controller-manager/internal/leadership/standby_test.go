// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// watchPause is the longest pause between two watches.
const watchPause = retryPeriod

func TestStandbyDoesNotPoll(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		leader.run(untilTheEnd)
		standby.run(never(t))
		pass(time.Hour)
		// The watch may report the Lease before the first read.
		for verb, most := range map[string]int{"get": 1, "watch": 1, "update": 0, "create": 0} {
			if got := standby.client.count(verb); got > most {
				t.Errorf("%d times %s, want at most %d", got, verb, most)
			}
		}
		standby.end(t)
		if got := standby.client.count("get"); got > 1 {
			t.Errorf("the standby has read the Lease %d times until its end, want at most once", got)
		}
		leader.end(t)
	})
}

func TestReleasedLeaseIsTakenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		leader.run(untilTheEnd)
		var work campaigns
		standby.run(work.lead)
		pass(time.Hour)
		leader.end(t)
		released := time.Now()
		pass(0)
		if len(work.begun) != 1 || work.begun[0] != released {
			t.Errorf("led at %v, want at %v, when the Lease was released", work.begun, released)
		}
		lease, err := server.get()
		if err != nil {
			t.Fatal(err)
		}
		if got := ptr.Deref(lease.Spec.LeaseTransitions, 0); got != 1 {
			t.Errorf("%d transitions, want 1", got)
		}
		for what, at := range map[string]time.Time{"acquired": lease.Spec.AcquireTime.Time, "renewed": lease.Spec.RenewTime.Time} {
			if !at.Equal(released) {
				t.Errorf("%s at %v, want %v", what, at, released)
			}
		}
		standby.end(t)
	})
}

// How long after the holder's last sign of life the Lease is taken.
func TestExpiredLeaseIsTaken(t *testing.T) {
	edit := func(change func(*coordinationv1.LeaseSpec)) func(*apiServer) {
		return func(s *apiServer) { s.edit(func(l *coordinationv1.Lease) { change(&l.Spec) }) }
	}
	tests := map[string]struct {
		happens func(*apiServer)
		want    time.Duration
	}{
		"nothing happens": {nil, leaseDuration},
		"it is deleted":   {func(s *apiServer) { s.remove() }, leaseDuration},
		"it is emptied":   {edit(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil }), leaseDuration},
		"it is released": {edit(func(s *coordinationv1.LeaseSpec) {
			s.HolderIdentity, s.LeaseDurationSeconds = nil,
				ptr.To[int32](1)
		}), 5 * time.Second},
		"another takes it": {func(s *apiServer) { s.put("another") }, 5*time.Second + leaseDuration},
		"a longer duration": {edit(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = ptr.To[int32](60) }),
			65 * time.Second},
		"a duration above the limit": {edit(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = ptr.To[int32](100000) }), 65 * time.Second},
		"a longer duration, then deleted": {func(s *apiServer) {
			s.edit(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](300) })
			s.remove()
		}, 5*time.Second + leaseDuration},
		"a longer duration, then emptied": {func(s *apiServer) {
			s.edit(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To[int32](300) })
			s.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		}, 5*time.Second + leaseDuration},
		"an annotation": {func(s *apiServer) {
			s.edit(func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"by": "somebody"} })
		}, leaseDuration},
		"times that are years off": {edit(func(s *coordinationv1.LeaseSpec) {
			s.RenewTime.Time = s.RenewTime.AddDate(10, 0, 0)
		}), 5*time.Second + leaseDuration},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				standby := newCandidate(t, server, "standby")
				var work campaigns
				server.put("crashed")
				standby.run(work.lead)
				began := time.Now()
				pass(5 * time.Second)
				if tc.happens != nil {
					tc.happens(server)
				}
				pass(time.Hour)
				if len(work.begun) != 1 {
					t.Fatalf("%d terms, want 1", len(work.begun))
				}
				if got := work.begun[0].Sub(began); got != tc.want {
					t.Errorf("led after %v, want after %v", got, tc.want)
				}
				standby.end(t)
			})
		})
	}
}

// A standby whose watch is silent must not take a Lease that another process holds.
func TestStandbyWithSilentWatchTakesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		var work campaigns
		leader.run(work.lead)
		standby.run(never(t))
		pass(time.Minute)
		standby.client.silenceWatch()
		pass(time.Hour)
		if len(work.terms) != 1 || work.last().Valid() != nil {
			t.Errorf("%d terms of the leader", len(work.terms))
		}
		if got := server.writesBy("standby"); got != 0 {
			t.Errorf("the standby wrote %d times", got)
		}
		// It reads the Lease only when it believes that the Lease has expired.
		if got, most := standby.client.count("get"), int(time.Hour/leaseDuration)+2; got > most {
			t.Errorf("the standby has read the Lease %d times in an hour, want at most %d", got, most)
		}
		standby.end(t)
		leader.end(t)
	})
}

func TestTakeoverWithoutWatchPermission(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		standby.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "watch" {
				return apierrors.NewForbidden(coordinationv1.Resource("leases"), "lease", nil)
			}
			return nil
		})
		leader.run(untilTheEnd)
		var work campaigns
		standby.run(work.lead)
		pass(time.Minute)
		leader.end(t)
		pass(leaseDuration + 3*retryPeriod)
		if len(work.begun) != 1 {
			t.Errorf("%d terms, want 1", len(work.begun))
		}
		if !standby.Status().Leading {
			t.Errorf("the status is %q", standby.Status())
		}
		if got := standby.errors(); len(got) != 1 {
			t.Errorf("logged errors %q, want one, that the Lease cannot be watched", got)
		}
		standby.end(t)
	})
}

func TestEndedWatchIsReopened(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, standby := newCandidate(t, server, "leader"), newCandidate(t, server, "standby")
		leader.run(untilTheEnd)
		var work campaigns
		standby.run(work.lead)
		pass(time.Minute)
		standby.client.endWatch()
		pass(watchPause)
		leader.end(t)
		pass(0)
		if len(work.begun) != 1 {
			t.Error("a Lease that is released after the watch was opened again is not taken at once")
		}
		standby.end(t)
	})
}

func TestOneOfSeveralStandbysLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader := newCandidate(t, server, "leader")
		leader.run(untilTheEnd)
		standbys := []*candidate{newCandidate(t, server, "b"), newCandidate(t, server, "c"), newCandidate(t, server, "d")}
		works := make([]campaigns, len(standbys))
		for i, standby := range standbys {
			standby.run(works[i].lead)
		}
		pass(time.Minute)
		leader.end(t)
		pass(time.Hour)
		terms := 0
		for i, standby := range standbys {
			terms += len(works[i].terms)
			if got := standby.errors(); len(got) > 0 {
				t.Errorf("logged errors %q, want none for a lost race", got)
			}
		}
		if terms != 1 {
			t.Errorf("%d terms, want 1", terms)
		}
		for _, standby := range standbys {
			standby.end(t)
		}
	})
}

// A backup of the cluster's data is restored. The state read then is older than the known
// one, and must be accepted.
func TestRestoredBackup(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		server.put("old leader")
		server.mutex.Lock()
		backup, version := server.lease.DeepCopy(), server.version
		server.version += 1000
		server.mutex.Unlock()
		var work campaigns
		a.run(work.lead)
		pass(time.Minute)
		server.mutex.Lock()
		server.lease, server.version = backup, version
		server.mutex.Unlock()
		pass(3 * leaseDuration)
		if holder := server.holder(); holder != "a" || work.last().Valid() != nil {
			t.Errorf("the Lease is held by %q, the last of %d terms: %v", holder, len(work.terms), work.last().Valid())
		}
		a.end(t)
		if holder := server.holder(); holder != "" {
			t.Errorf("the Lease is held by %q, want it free", holder)
		}
	})
}

func TestStatusString(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, b := newCandidate(t, server, "a"), newCandidate(t, server, "b")
		if got := a.Status().String(); got != "not known since 2000-01-01T00:00:00Z: the Lease has not been read yet" {
			t.Errorf("before: %q", got)
		}
		a.run(untilTheEnd)
		b.run(untilTheEnd)
		pass(time.Minute)
		for c, want := range map[*candidate]string{
			a: "this process, a, leads since 2000-01-01T00:00:00Z",
			b: "a leads since 2000-01-01T00:00:00Z; this process takes the Lease in 15s unless it is renewed",
		} {
			if got := c.Status().String(); got != want {
				t.Errorf("status is %q, want %q", got, want)
			}
		}
		a.end(t)
		pass(0)
		if a.Status().Leading {
			t.Error("a process that released the Lease reports that it leads")
		}
		if got, want := b.Status().String(), "this process, b, leads since 2000-01-01T00:01:00Z"; got != want {
			t.Errorf("status of the successor is %q, want %q", got, want)
		}
		b.end(t)
	})
}

// The Lease still names this process as its holder.
func TestStatusOfLostTermIsNotLeading(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		work := campaigns{drain: time.Minute}
		a.run(work.lead)
		pass(time.Minute)
		a.client.cutOff()
		pass(leaseDuration)
		const want = "not known since 2000-01-01T00:01:00Z: connection refused"
		if got := a.Status().String(); got != want {
			t.Errorf("status while the work drains is %q, want %q", got, want)
		}
		pass(work.drain)
		if got := a.Status().String(); got != want {
			t.Errorf("status during the next campaign is %q, want %q", got, want)
		}
		a.end(t)
	})
}
