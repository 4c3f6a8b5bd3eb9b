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

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// campaigns is work that records its terms.
type campaigns struct {
	terms []*Term
	begun []time.Time
	ended []time.Time
	drain time.Duration
}

func (c *campaigns) lead(term *Term) error {
	c.terms, c.begun = append(c.terms, term), append(c.begun, time.Now())
	<-term.Ctx.Done()
	c.ended = append(c.ended, time.Now())
	time.Sleep(c.drain)
	return nil
}

// last returns the last term.
func (c *campaigns) last() *Term { return c.terms[len(c.terms)-1] }

// end stops the candidate and checks that it ends in order.
func (c *candidate) end(t *testing.T) {
	t.Helper()
	c.stop()
	if err := c.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestUnrenewedLeaseIsLostInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		work := campaigns{drain: time.Minute}
		a.run(work.lead)
		a.client.afterEach(func(_ context.Context, verb string) error {
			if verb == "update" {
				time.Sleep(retryPeriod / 2) // a slow response: the renewal counts from the request
			}
			return nil
		})
		pass(time.Minute)
		a.client.afterEach(noHook)
		lease, err := server.get()
		if err != nil {
			t.Fatal(err)
		}
		a.client.cutOff()
		pass(leaseDuration)
		if len(work.ended) != 1 {
			t.Fatal("the term is valid although another process may lead")
		}
		if got := work.ended[0].Sub(lease.Spec.RenewTime.Time); got != validity {
			t.Errorf("the term ended %v after the last renewal was sent, want %v", got, validity)
		}
		if err := work.last().Valid(); !errors.Is(err, ErrLost) {
			t.Errorf("Valid after the loss: %v, want %v", err, ErrLost)
		}
		pass(time.Hour)
		after, err := server.get()
		if err != nil || after.ResourceVersion != lease.ResourceVersion {
			t.Errorf("the Lease was written after it was lost: %v, %v", after, err)
		}
		a.end(t)
	})
}

func TestLostTermStartsNewCampaign(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		work := campaigns{drain: time.Minute}
		a.run(work.lead)
		a.client.cutOff()
		pass(leaseDuration)
		a.client.heal()
		pass(time.Hour)
		for _, w := range server.writes {
			if w.holder != "a" {
				t.Errorf("the Lease was given to %q after a lost term", w.holder)
			}
		}
		if len(work.terms) != 2 || work.last().Valid() != nil {
			t.Fatalf("%d terms, the last %v, want a second, valid one", len(work.terms), work.last().Valid())
		}
		if work.begun[1].Sub(work.ended[0]) < work.drain {
			t.Error("the second term began before the work of the first had drained")
		}
		if err := a.Check(nil); err != nil {
			t.Errorf("Check: %v", err)
		}
		a.end(t)
		if got := server.holder(); got != "" {
			t.Errorf("the Lease is held by %q, want it free", got)
		}
	})
}

func TestLeaseTakenAwayEndsTermAtOnce(t *testing.T) {
	tests := map[string]struct {
		happens func(*apiServer)
		why     string
		within  time.Duration // until it leads again; 0 if it does not
	}{
		"another holder": {func(s *apiServer) { s.put("b") }, "held by b", 0},
		"deleted":        {func(s *apiServer) { s.remove() }, "deleted", time.Second},
		"released": {func(s *apiServer) {
			s.edit(func(l *coordinationv1.Lease) {
				l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = nil, ptr.To[int32](1)
			})
		}, "removed from the Lease", time.Second},
		"emptied": {func(s *apiServer) {
			s.edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
		}, "removed from the Lease", time.Second},
		"deleted and created by another": {func(s *apiServer) { s.remove(); s.put("b") }, "", 0},
	}
	for name, tc := range tests {
		for _, silent := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", silent watch", false: ""}[silent], func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *apiServer) {
					a := newCandidate(t, server, "a")
					work := campaigns{drain: 3 * retryPeriod}
					a.run(work.lead)
					pass(time.Minute)
					latest := time.Duration(0)
					if silent {
						a.client.silenceWatch()
						latest = retryPeriod
					}
					tc.happens(server)
					began, writes := time.Now(), server.writesBy("a")
					pass(latest)
					if len(work.ended) != 1 {
						t.Fatalf("the term is still valid %v after the Lease was lost", latest)
					}
					if err := work.terms[0].Valid(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), tc.why) {
						t.Errorf("Valid: %v, want %v: %s", err, ErrLost, tc.why)
					}
					pass(work.drain - time.Second)
					if got := server.writesBy("a") - writes; got != 0 {
						t.Errorf("%d writes of the Lease while the work drained", got)
					}
					pass(tc.within + leaseDuration - work.drain)
					if again := len(work.terms) == 2; again != (tc.within > 0) {
						t.Errorf("%d terms %v after the loss", len(work.terms), time.Since(began))
					}
					if tc.within == 0 {
						if got := server.writesBy("a") - writes; got != 0 {
							t.Errorf("%d writes to the Lease of another", got)
						}
					}
					a.end(t)
					if tc.within == 0 && server.holder() != "b" {
						t.Errorf("the Lease is held by %q, want b", server.holder())
					}
				})
			})
		}
	}
}

func TestUnrelatedLeaseChangesKeepTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var work campaigns
		a.run(work.lead)
		pass(time.Minute)
		server.edit(func(l *coordinationv1.Lease) { l.Annotations = map[string]string{"by": "somebody"} })
		pass(time.Minute)
		a.client.endWatch()
		pass(time.Minute)
		a.client.cutOff()
		pass(validity - 2*retryPeriod)
		a.client.heal()
		pass(time.Minute)
		if len(work.terms) != 1 || work.last().Valid() != nil {
			t.Errorf("%d terms, the last %v, want one valid term", len(work.terms), work.last().Valid())
		}
		lease, err := server.get()
		if err != nil || lease.Annotations["by"] != "somebody" {
			t.Errorf("the Lease has the annotations %v, %v", lease.Annotations, err)
		}
		a.end(t)
	})
}

// The response to a renewal is lost, and another process then takes the Lease.
func TestHealedPartitionKeepsNewLeadersLease(t *testing.T) {
	for _, when := range []time.Duration{leaseDuration, leaseDuration + time.Second, leaseDuration + 3*retryPeriod} {
		t.Run(when.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a, b := newCandidate(t, server, "a"), newCandidate(t, server, "b")
				workOfA, workOfB := campaigns{drain: time.Second}, campaigns{}
				a.run(workOfA.lead)
				b.run(workOfB.lead)
				pass(time.Minute)
				a.client.cutOff()
				pass(when)
				writes, tries := server.writesBy("a"), a.client.count("update")
				a.client.heal()
				pass(time.Hour)
				if len(workOfB.terms) != 1 || workOfB.last().Valid() != nil || server.holder() != "b" {
					t.Fatalf("%d terms of the new leader, the Lease is held by %q", len(workOfB.terms), server.holder())
				}
				if got := a.client.count("update") - tries; got != 0 {
					t.Errorf("the old leader tried %d times to renew after the partition healed", got)
				}
				if got := server.writesBy("a") - writes; got != 0 {
					t.Errorf("the old leader wrote the Lease %d times after the partition healed", got)
				}
				if workOfB.begun[0].Before(workOfA.ended[0].Add(writeTimeout)) {
					t.Error("the new leader began while a write of the old one may be in flight")
				}
				a.end(t)
				b.end(t)
			})
		})
	}
}

// The elector renews without reading, so a write must not carry the resourceVersion of a
// Lease seen only by the watch.
func TestRenewalKeepsLeaseSeenOnlyByWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var work campaigns
		a.run(work.lead)
		pass(time.Minute)
		a.client.cutOff()
		pass(validity + retryPeriod) // the term is lost
		var failed atomic.Bool
		a.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "update" && failed.CompareAndSwap(false, true) {
				return errUnreachable
			}
			return nil
		})
		for !failed.Load() {
			pass(10 * time.Millisecond)
		}
		server.put("b")
		for range 30 {
			pass(retryPeriod)
			if holder := server.holder(); holder != "b" {
				t.Fatalf("the Lease is held by %q, want b", holder)
			}
			server.put("b") // renews
		}
		a.end(t)
	})
}

// The Lease was not renewed in time, but has not expired when the work has drained and the
// process must stop.
func TestLeaseHeldAfterLostTermIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		work := campaigns{drain: leaseDuration - validity - time.Second}
		a.run(work.lead)
		a.client.cutOff()
		pass(validity)
		a.client.heal()
		a.end(t)
		if got := server.holder(); got != "" || len(work.ended) != 1 {
			t.Errorf("the Lease is held by %q after %d terms, want it free after one", got, len(work.ended))
		}
	})
}

func TestUndrainedWorkEndsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			return errNotDrained
		})
		a.client.cutOff()
		if err := a.wait(); !errors.Is(err, errNotDrained) {
			t.Errorf("Run: %v, want %v", err, errNotDrained)
		}
		if got := server.holder(); got != "a" {
			t.Errorf("the Lease is held by %q, want it left to expire", got)
		}
	})
}

// Timers of a suspended process fire late. Valid must be right before they fire.
func TestSuspendedProcessLosesTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiServer) {
		term := newTerm(t.Context(), validity)
		defer term.over()
		term.renewed(time.Now())
		term.timer.Stop() // as if it had not been scheduled yet
		time.Sleep(validity - time.Nanosecond)
		if err := term.Valid(); err != nil {
			t.Errorf("Valid in time: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := term.Valid(); !errors.Is(err, ErrLost) {
			t.Errorf("Valid: %v, want %v", err, ErrLost)
		}
		if !errors.Is(context.Cause(term.Ctx), ErrLost) {
			t.Errorf("the cause seen by the work is %v, want %v", context.Cause(term.Ctx), ErrLost)
		}
		term.renewed(time.Now()) // a response that is too late
		if term.Valid() == nil {
			t.Error("a lost term is valid again")
		}
	})
}

func TestManyTermsLeakNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var work campaigns
		a.run(work.lead)
		for i := range 200 {
			pass(time.Second)
			if len(work.terms) != i+1 {
				t.Fatalf("%d terms, want %d", len(work.terms), i+1)
			}
			server.remove()
		}
		pass(time.Second)
		a.end(t) // the bubble fails if a goroutine leaks
	})
}
