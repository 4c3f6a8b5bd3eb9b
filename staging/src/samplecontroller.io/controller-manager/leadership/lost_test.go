// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"errors"
	"testing"
	"time"
)

func TestALostLeaseEndsTheTermInTimeAndNothingIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var lost, drained time.Time
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			lost = time.Now()
			if err := term.Valid(); !errors.Is(err, ErrLost) {
				t.Errorf("Valid after the loss: %v, want %v", err, ErrLost)
			}
			time.Sleep(time.Minute)
			drained = time.Now()
			return nil
		})
		pass(time.Minute)
		lease, err := server.get()
		if err != nil {
			t.Fatal(err)
		}
		a.client.cutOff()

		if err := a.wait(); !errors.Is(err, ErrLost) {
			t.Errorf("Run: %v, want %v", err, ErrLost)
		}
		if renewed := lease.Spec.RenewTime.Time; lost.Sub(renewed) >= leaseDuration {
			t.Errorf("the term ended %v after the last renewal, when another may already lead", lost.Sub(renewed))
		}
		if since := time.Since(drained); since != 0 {
			t.Errorf("Run returned %v after the work had drained, want at once", since)
		}
		if drained.Sub(lost) != time.Minute {
			t.Errorf("Run did not wait until the work had drained")
		}
		after, err := server.get()
		if err != nil || after.ResourceVersion != lease.ResourceVersion {
			t.Errorf("the Lease was written after it was lost: %v, %v", after, err)
		}
	})
}

func TestALeaseThatAnotherTookIsNeverWrittenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		pass(time.Minute)
		server.put("b")
		writes := server.writesBy("a")
		if err := a.wait(); !errors.Is(err, ErrLost) {
			t.Errorf("Run: %v, want %v", err, ErrLost)
		}
		if got := server.writesBy("a"); got != writes {
			t.Errorf("%d writes to a Lease that another holds", got-writes)
		}
		if got := server.holder(); got != "b" {
			t.Errorf("the Lease is held by %q, want b", got)
		}
	})
}

// The answer to a renewal is lost, and in the meantime another takes the Lease.
func TestAHealedPartitionDoesNotEraseTheNewLeadersLease(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, b := newCandidate(t, server, "a"), newCandidate(t, server, "b")
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			time.Sleep(time.Minute) // while it drains, the partition heals
			return nil
		})
		a.client.cutOff()
		b.run(untilTheEnd)
		pass(leaseDuration + 3*retryPeriod)
		a.client.heal()
		if err := a.wait(); !errors.Is(err, ErrLost) {
			t.Errorf("Run of the old leader: %v, want %v", err, ErrLost)
		}
		if got := server.holder(); got != "b" {
			t.Errorf("the Lease is held by %q, want b", got)
		}
		b.stop()
		if err := b.wait(); err != nil {
			t.Errorf("Run of the new leader: %v", err)
		}
	})
}

func TestTheErrorOfWorkWhoseLeaseWasLostIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			return errNotDrained
		})
		a.client.cutOff()
		if err := a.wait(); !errors.Is(err, ErrLost) || !errors.Is(err, errNotDrained) {
			t.Errorf("Run: %v, want %v and %v", err, ErrLost, errNotDrained)
		}
	})
}

func TestAShortFailureOfTheAPIServerCostsNoTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var term *Term
		a.run(func(given *Term) error {
			term = given
			return untilTheEnd(given)
		})
		a.client.cutOff()
		pass(renewDeadline - 2*retryPeriod)
		a.client.heal()
		pass(time.Minute)
		if err := term.Valid(); err != nil {
			t.Errorf("the term ended: %v", err)
		}
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
