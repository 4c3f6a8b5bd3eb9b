// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

func TestReleaseLetsSecondCandidateLead(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a, b := newCandidate(t, server, "a"), newCandidate(t, server, "b")
		var leading atomic.Int32
		var aDrained, bLed time.Time
		alone := func(begin, end *time.Time) func(*Term) error {
			return func(term *Term) error {
				if leading.Add(1) > 1 {
					t.Error("two processes lead at once")
				}
				defer leading.Add(-1)
				*begin = time.Now()
				<-term.Ctx.Done()
				time.Sleep(2 * leaseDuration)
				*end = time.Now()
				return nil
			}
		}
		var ignored time.Time
		a.run(alone(&ignored, &aDrained))
		b.run(alone(&bLed, &ignored))
		pass(time.Hour)
		if !bLed.IsZero() {
			t.Error("the second leads although the first has not released")
		}
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run of the first: %v", err)
		}
		pass(3 * retryPeriod)
		if bLed.IsZero() {
			t.Fatalf("the second does not lead %v after the first has released", 3*retryPeriod)
		}
		if bLed.Before(aDrained) {
			t.Error("the second led before the first had drained")
		}
		b.stop()
		if err := b.wait(); err != nil {
			t.Errorf("Run of the second: %v", err)
		}
		if got := server.holder(); got != "" {
			t.Errorf("the Lease is held by %q, want it free", got)
		}
	})
}

func TestCrashedLeadersLeaseMustExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.put("crashed")
		begin := time.Now()
		a := newCandidate(t, server, "a")
		var led time.Time
		a.run(func(term *Term) error {
			led = time.Now()
			return untilTheEnd(term)
		})
		pass(2 * leaseDuration)
		if got := led.Sub(begin); led.IsZero() || got < leaseDuration {
			t.Errorf("led after %v, want not before %v", got, leaseDuration)
		}
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestStoppedCandidateKeepsOthersLease(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		leader, a := newCandidate(t, server, "leader"), newCandidate(t, server, "a")
		leader.run(untilTheEnd)
		a.run(never(t))
		pass(time.Minute)
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := server.writesBy("a"); got != 0 {
			t.Errorf("the standby wrote %d times, want never", got)
		}
		if got := server.holder(); got != "leader" {
			t.Errorf("the Lease is held by %q, want leader", got)
		}
		leader.stop()
		if err := leader.wait(); err != nil {
			t.Errorf("Run of the leader: %v", err)
		}
	})
}

func TestStopWithoutAPIServer(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.client.cutOff()
		a.run(never(t))
		pass(time.Hour)
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestStopDuringHangingRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.client.beforeEach(func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		a.run(never(t))
		pass(time.Minute)
		a.stop()
		stopped := time.Now()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		// The process must read the Lease before it knows that it holds none.
		if took := time.Since(stopped); took > renewDeadline {
			t.Errorf("Run returned %v after it was told to stop, want at most %v", took, renewDeadline)
		}
	})
}

// The API server commits the request that takes the Lease, but the process is told to stop
// before it receives the response.
func TestStopReleasesLeaseJustAcquired(t *testing.T) {
	tests := map[string]struct {
		prepare func(*apiServer)
		answer  error
	}{
		"new Lease, response lost":          {func(*apiServer) {}, context.Canceled},
		"new Lease, response received":      {func(*apiServer) {}, nil},
		"released Lease, response lost":     {func(s *apiServer) { s.put("") }, context.Canceled},
		"released Lease, response received": {func(s *apiServer) { s.put("") }, nil},
		"released Lease, server error":      {func(s *apiServer) { s.put("") }, errors.New("internal error")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			// Chance decides whether the stop or the acquired Lease is noticed first.
			for range 20 {
				inBubble(t, func(t *testing.T, server *apiServer) {
					tc.prepare(server)
					a := newCandidate(t, server, "a")
					a.client.afterEach(func(_ context.Context, verb string) error {
						if verb == "get" || verb == "watch" {
							return nil
						}
						a.stop()
						a.client.afterEach(noHook)
						return tc.answer
					})
					a.run(func(term *Term) error {
						if term.Ctx.Err() == nil {
							t.Error("led in a valid term after being told to stop")
						}
						return untilTheEnd(term)
					})
					if err := a.wait(); err != nil {
						t.Errorf("Run: %v", err)
					}
					if got := server.holder(); got != "" {
						t.Errorf("the Lease is held by %q, want it free", got)
					}
				})
			}
		})
	}
}

func TestRunWithCanceledContextKeepsLeaseFree(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.put("")
		a := newCandidate(t, server, "a")
		a.stop()
		a.run(untilTheEnd)
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := server.holder(); got != "" {
			t.Errorf("the Lease is held by %q, want it free", got)
		}
	})
}

func TestEachRunHasNewTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		ctx := a.ctx
		var terms []*Term
		for range 3 {
			a.ctx, a.stop = context.WithCancel(ctx)
			a.run(func(term *Term) error {
				terms = append(terms, term)
				return untilTheEnd(term)
			})
			pass(time.Minute)
			if got := server.holder(); got != "a" {
				t.Errorf("the Lease is held by %q in term %d, want a", got, len(terms))
			}
			a.stop()
			if err := a.wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if got := server.holder(); got != "" {
				t.Errorf("the Lease is held by %q after term %d, want it free", got, len(terms))
			}
		}
		if len(terms) != 3 || terms[0] == terms[1] || terms[1] == terms[2] {
			t.Errorf("led in terms %v, want three", terms)
		}
	})
}

func TestRunWithoutElectionEndsWithContext(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *apiServer) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var ended *Term
		err := RunWithoutElection(ctx, nil, func(term *Term) error {
			ended = term
			if err := term.Valid(); err != nil {
				t.Errorf("Valid at first: %v", err)
			}
			return untilTheEnd(term)
		})
		if err != nil {
			t.Errorf("RunWithoutElection: %v", err)
		}
		if ended.Valid() == nil {
			t.Error("Valid afterwards: nil, want the cause of its end")
		}
	})
}

func TestRunWithoutElectionReturnsError(t *testing.T) {
	var term *Term
	err := RunWithoutElection(t.Context(), nil, func(given *Term) error {
		term = given
		return errNotDrained
	})
	if !errors.Is(err, errNotDrained) {
		t.Errorf("RunWithoutElection: %v, want %v", err, errNotDrained)
	}
	if term.Valid() == nil {
		t.Error("the term is valid after its work has returned")
	}
}

func TestRunWithoutElectionOpensGate(t *testing.T) {
	gate := NewGate(writeTimeout)
	through := gate.Wrap(&api{})
	err := RunWithoutElection(t.Context(), gate, func(*Term) error { return do(t, through, http.MethodPut, foos) })
	if err != nil {
		t.Errorf("write during the term: %v", err)
	}
	if err := do(t, through, http.MethodPut, foos); !errors.Is(err, ErrNotLeading) {
		t.Errorf("write after the term: %v, want %v", err, ErrNotLeading)
	}
}
