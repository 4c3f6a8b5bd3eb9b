// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	foosBehind = "cache of foos does not follow"
	podsBehind = "cache of pods does not follow"
)

// fitness is what a test candidate reports about itself.
type fitness struct {
	unfit  atomic.Bool
	always []string // reasons besides foosBehind
}

func (f *fitness) assess() []string {
	if f.unfit.Load() {
		return append([]string{foosBehind}, f.always...)
	}
	return f.always
}

// newAssessed returns a candidate that assesses itself by the returned fitness.
func newAssessed(t *testing.T, server *apiServer, identity string) (*candidate, *fitness) {
	t.Helper()
	c, f := newCandidate(t, server, identity), &fitness{}
	c.AssessBy(f.assess)
	return c, f
}

func TestNextMove(t *testing.T) {
	now := time.Now()
	long, short, recently := now.Add(-offerAfter), now.Add(-offerAfter+1), now.Add(-refuseFor+1)
	foos, both := []string{foosBehind}, []string{podsBehind, foosBehind}
	foosSince := func(begin time.Time) map[string]time.Time { return map[string]time.Time{foosBehind: begin} }
	bothSince := func(begin time.Time) map[string]time.Time {
		return map[string]time.Time{foosBehind: begin, podsBehind: begin}
	}
	const x = foosBehind
	tests := map[string]struct {
		s    situation
		want move
	}{
		"fit leader":                                   {situation{leading: true, holder: "me"}, stay},
		"fit leader, offered before":                   {situation{leading: true, holder: "me", offered: x}, withdraw},
		"fit leader, offered before, accepted":         {situation{leading: true, holder: "me", offered: x, preferred: "b"}, withdraw},
		"fit leader, preferred by the previous leader": {situation{leading: true, holder: "me", preferred: "me"}, withdraw},
		"unfit for a short time":                       {situation{leading: true, holder: "me", unfit: foos, since: foosSince(short)}, stay},
		"unfit for a short time, accepted": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(short), offered: x,
			preferred: "b"}, stay},
		"unfit for long": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(long)}, offer},
		"unfit for long, offered": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(long), offered: x},
			stay},
		"unfit for long, offered for less": {situation{leading: true, holder: "me", unfit: both, since: bothSince(long), offered: x}, offer},
		"unfit for long, and more for a short time": {situation{leading: true, holder: "me", unfit: both,
			since: map[string]time.Time{foosBehind: long, podsBehind: short}, offered: x}, stay},
		"unfit for long, accepted": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(long), offered: x,
			preferred: "b"}, handOver},
		"unfit for long, accepted without offer": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(long), preferred: "b"}, offer},
		"unfit for long, accepted by itself": {situation{leading: true, holder: "me", unfit: foos, since: foosSince(long), offered: x, preferred: "me"},
			stay},
		"leader whose term ends": {situation{holder: "me", unfit: foos, since: foosSince(long), offered: x, preferred: "b"},
			stay},
		"fit leader whose term ends":           {situation{holder: "me", offered: x}, stay},
		"standby":                              {situation{holder: "a"}, stay},
		"standby, offered":                     {situation{holder: "a", offered: x}, accept},
		"standby, offered by an older version": {situation{holder: "a", offered: "caches do not follow: foos, pods"}, accept},
		"standby, offered, released":           {situation{offered: x}, stay},
		"standby, accepted by another":         {situation{holder: "a", offered: x, preferred: "c"}, stay},
		"standby with the same reason":         {situation{holder: "a", offered: x, unfit: foos, since: foosSince(now)}, stay},
		"standby with one of two reasons": {situation{holder: "a", offered: foosBehind + between + podsBehind, unfit: foos,
			since: foosSince(now)}, accept},
		"standby with both reasons": {situation{holder: "a", offered: foosBehind + between + podsBehind, unfit: both,
			since: bothSince(now)}, stay},
		"standby with another reason":       {situation{holder: "a", offered: podsBehind, unfit: foos, since: foosSince(now)}, stay},
		"standby that handed over recently": {situation{holder: "a", offered: x, handedOver: recently}, stay},
		"standby that handed over long ago": {situation{holder: "a", offered: x, handedOver: now.Add(-refuseFor)}, accept},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.s.identity, tc.s.now = "me", now
			if got := tc.s.next(); got != tc.want {
				t.Errorf("next = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestUnfitLeaderHandsOverToFitStandby(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, fitnessOfA := newAssessed(t, server, "a")
		b, _ := newAssessed(t, server, "b")
		c, fitnessOfC := newAssessed(t, server, "c")
		fitnessOfC.unfit.Store(true)
		const drain = 3 * time.Second
		workOfA, workOfB := campaigns{drain: drain}, campaigns{}
		a.run(workOfA.lead)
		b.run(workOfB.lead)
		c.run(never(t))
		pass(time.Minute)
		b.client.beforeEach(func(_ context.Context, verb string) error { // gives others time to be faster
			if verb == "update" && server.holder() == "" {
				time.Sleep(time.Second)
			}
			return nil
		})
		fitnessOfA.unfit.Store(true)
		pass(offerAfter - time.Second)
		if len(workOfA.ended) != 0 || strings.Contains(b.Status().String(), foosBehind) {
			t.Errorf("the Lease is offered before %v: %v", offerAfter, b.Status())
		}
		pass(10 * assessPeriod)
		if len(workOfB.begun) != 1 || server.holder() != "b" {
			t.Fatalf("%d terms of the fit standby, the Lease is held by %q", len(workOfB.begun), server.holder())
		}
		if cause := context.Cause(workOfA.last().Ctx); !errors.Is(cause, errHandedOver) || workOfA.last().lost() != nil {
			t.Errorf("the first term ended by %v and was lost by %v, want a handover", cause, workOfA.last().lost())
		}
		if gap := workOfB.begun[0].Sub(workOfA.ended[0].Add(drain)); gap < 0 || gap > 2*time.Second {
			t.Errorf("the second led %v after the first had drained, want at once", gap)
		}
		lease, err := server.get()
		if err != nil || len(lease.Annotations) != 0 {
			t.Errorf("annotations of the Lease after the handover are %v, %v, want none", lease.Annotations, err)
		}
		pass(refuseFor)
		if len(workOfA.terms) != 1 || workOfB.last().Valid() != nil {
			t.Errorf("%d terms of the first, the second's: %v", len(workOfA.terms), workOfB.last().Valid())
		}
		c.end(t)
		b.end(t)
		pass(0)
		if len(workOfA.terms) != 2 {
			t.Error("the first does not lead again after the second has released the Lease")
		}
		a.end(t)
	})
}

func TestUnfitLeaderKeepsLeaseIfNobodyIsFit(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, fitnessOfA := newAssessed(t, server, "a")
		b, fitnessOfB := newAssessed(t, server, "b")
		old := newCandidate(t, server, "old") // ignores offers
		var work campaigns
		a.run(work.lead)
		b.run(never(t))
		old.run(never(t))
		pass(time.Minute)
		fitnessOfA.unfit.Store(true)
		fitnessOfB.unfit.Store(true)
		pass(time.Hour)
		if len(work.terms) != 1 || work.last().Valid() != nil {
			t.Errorf("%d terms, the last: %v, want one valid term", len(work.terms), work.last().Valid())
		}
		if got := server.writesBy("b"); got != 0 {
			t.Errorf("the standby wrote %d times", got)
		}
		if got := strings.Count(a.log.String(), "Offering the lease"); got != 1 {
			t.Errorf("the Lease was offered %d times, want once", got)
		}
		if got := b.Status().String(); !strings.Contains(got, "a leads since 2000-01-01T00:00:00Z, and wants to hand over: "+foosBehind) {
			t.Errorf("the status is %q, want the offer in it", got)
		}
		fitnessOfA.unfit.Store(false)
		pass(time.Hour)
		lease, err := server.get()
		if err != nil || len(lease.Annotations) != 0 || len(work.terms) != 1 {
			t.Errorf("annotations of the Lease of a fit leader are %v, %v, after %d terms", lease.Annotations, err, len(work.terms))
		}
		for _, c := range []*candidate{b, old, a} {
			c.end(t)
		}
	})
}

// What no replica can read does not keep the others from handing over for another reason.
func TestSharedReasonDoesNotPreventHandover(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, fitnessOfA := newAssessed(t, server, "a")
		b, fitnessOfB := newAssessed(t, server, "b")
		fitnessOfA.always, fitnessOfB.always = []string{podsBehind}, []string{podsBehind}
		var workOfA, workOfB campaigns
		a.run(workOfA.lead)
		b.run(workOfB.lead)
		pass(time.Hour)
		if len(workOfA.ended) != 0 {
			t.Fatalf("the leader handed over for a reason that the standby has, too: %v", context.Cause(workOfA.last().Ctx))
		}
		fitnessOfA.unfit.Store(true)
		pass(time.Minute)
		if len(workOfB.begun) != 1 || server.holder() != "b" {
			t.Errorf("%d terms of the standby after a minute, the Lease is held by %q, want b", len(workOfB.begun), server.holder())
		}
		b.end(t)
		a.end(t)
	})
}

// The problem shows only in the leader, whichever replica that is.
func TestSharedProblemCausesNoFlapping(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		var candidates []*candidate
		works := make([]campaigns, 3)
		for i, identity := range []string{"a", "b", "c"} {
			c := newCandidate(t, server, identity)
			c.AssessBy(func() []string {
				if c.Status().Leading {
					return []string{foosBehind}
				}
				return nil
			})
			c.run(works[i].lead)
			candidates = append(candidates, c)
		}
		pass(refuseFor)
		for i, work := range works {
			if len(work.terms) != 1 {
				t.Errorf("%d terms of %s within %v, want 1", len(work.terms), candidates[i].client.identity, refuseFor)
			}
		}
		for _, c := range candidates {
			c.end(t)
		}
	})
}

// The standby accepts, and is gone when the Lease is released.
func TestMissingPreferredHolderDelaysOneLeaseDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, fitnessOfA := newAssessed(t, server, "a")
		var work campaigns
		a.run(work.lead)
		fitnessOfA.unfit.Store(true)
		pass(offerAfter + 3*assessPeriod)
		server.edit(func(l *coordinationv1.Lease) { l.Annotations[preferredAnnotation] = "gone" })
		pass(2 * assessPeriod)
		if len(work.ended) != 1 || server.holder() != "" {
			t.Fatalf("%d terms have ended, the Lease is held by %q, want it released", len(work.ended), server.holder())
		}
		pass(leaseDuration)
		if len(work.terms) != 2 || work.begun[1].Sub(work.ended[0]) != leaseDuration {
			t.Errorf("terms began at %v, want a second one %v after %v", work.begun, leaseDuration, work.ended)
		}
		a.end(t)
	})
}

// A leader that crashed may have left an offer.
func TestNewHolderRemovesOldOffer(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.put("crashed")
		server.edit(func(l *coordinationv1.Lease) {
			l.Annotations = map[string]string{offeredAnnotation: "unfit", preferredAnnotation: "gone", "other": "kept"}
		})
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		pass(time.Minute)
		lease, err := server.get()
		if diff := cmp.Diff(map[string]string{"other": "kept"}, lease.Annotations); err != nil || held(lease) != "a" || diff != "" {
			t.Errorf("the Lease is held by %q, %v, annotations (-want +got):\n%s", held(lease), err, diff)
		}
		a.end(t)
	})
}
