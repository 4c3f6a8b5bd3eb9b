// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

var errNotDrained = errors.New("not drained")

func TestLeaseIsHeldDuringDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		const drain = 4 * leaseDuration
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			for drained := time.Now().Add(drain); time.Now().Before(drained); time.Sleep(time.Second) {
				lease, err := server.get()
				if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "a" {
					t.Errorf("the Lease is held by %q while its holder drains, want a", server.holder())
					return nil
				}
				if age := time.Since(lease.Spec.RenewTime.Time); age > renewDeadline {
					t.Errorf("the Lease was last renewed %v ago while its holder drains", age)
				}
			}
			return nil
		})
		pass(time.Minute)
		a.stop()
		stopped := time.Now()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(stopped); took != drain {
			t.Errorf("Run returned %v after it was told to stop, want %v, the time to drain", took, drain)
		}

		lease, err := server.get()
		if err != nil {
			t.Fatal(err)
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, "none"); holder != "" {
			t.Errorf("the Lease is held by %q after Run, want it free", holder)
		}
		if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds != 1 {
			t.Errorf("the duration of the free Lease is %d s, want 1, the mark of a release", seconds)
		}
	})
}

func TestTermEndCause(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var term *Term
		a.run(func(given *Term) error {
			term = given
			return untilTheEnd(given)
		})
		if err := term.Valid(); err != nil {
			t.Errorf("Valid during the term: %v", err)
		}
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := term.Valid(); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("Valid after the term: %v, want it ended but not lost", err)
		}
		if cause := context.Cause(term.Ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("the cause seen by the work is %v, want %v", cause, context.Canceled)
		}
	})
}

func TestReturningWorkReleasesLease(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var term *Term
		a.run(func(given *Term) error {
			term = given
			return nil
		})
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := term.Valid(); err == nil {
			t.Error("the term is valid after its work has returned")
		}
		if got := server.holder(); got != "" {
			t.Errorf("the Lease is held by %q, want it free", got)
		}
	})
}

func TestUndrainedWorkLeavesLeaseToExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		m := NewMetrics("test", metrics.NewKubeRegistry().MustRegister)
		a := newCandidate(t, server, "a", func(c *Config) { c.Metrics = m })
		a.run(func(term *Term) error {
			<-term.Ctx.Done()
			return errNotDrained
		})
		a.stop()
		if err := a.wait(); !errors.Is(err, errNotDrained) {
			t.Errorf("Run: %v, want %v", err, errNotDrained)
		}
		if n, err := testutil.GetCounterMetricValue(m.terms.WithLabelValues(endAbandoned)); n != 1 || err != nil {
			t.Errorf("%v abandoned terms are counted (%v), want 1", n, err)
		}
		writes := server.writesBy("a")
		if got := server.holder(); got != "a" {
			t.Errorf("the Lease is held by %q, want a: its work may still run", got)
		}
		pass(time.Hour)
		if got := server.writesBy("a"); got != writes {
			t.Errorf("the Lease was renewed %d times after Run had returned", got-writes)
		}
	})
}

// A canceled renewal may still be committed, just when the Lease is being released.
func TestReleaseRetriesConflicts(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		conflicts := 2
		a.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "update" && conflicts > 0 {
				conflicts--
				server.put("a")
			}
			return nil
		})
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := server.holder(); got != "" || conflicts > 0 {
			t.Errorf("the Lease is held by %q after %d conflicts, want it free", got, 2-conflicts)
		}
	})
}

func TestReleaseKeepsOthersLease(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		a.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "update" {
				server.put("b") // between a's read and its write of the release
			}
			return nil
		})
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := server.holder(); got != "b" {
			t.Errorf("the Lease is held by %q, want b", got)
		}
	})
}

func TestFailedReleaseLeavesLeaseToExpire(t *testing.T) {
	// The Lease is read only if somebody else has written it.
	for broken, edit := range map[string]bool{"update": false, "get": true} {
		t.Run("no "+broken, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a := newCandidate(t, server, "a")
				a.run(untilTheEnd)
				a.client.silenceWatch()
				pass(retryPeriod) // a has last seen the Lease in its own renewal
				if edit {
					server.put("a")
				}
				a.client.beforeEach(func(_ context.Context, verb string) error {
					if verb == broken {
						return errUnreachable
					}
					return nil
				})
				a.stop()
				if err := a.wait(); err != nil {
					t.Errorf("Run: %v, want nil: the work has drained", err)
				}
				if got := server.holder(); got != "a" {
					t.Errorf("the Lease is held by %q, want a", got)
				}
				if got := a.Status().Holder; got != "" {
					t.Errorf("the status has the holder %q, want none: its term is over", got)
				}
				if got := strings.Join(a.errors(), "\n"); !strings.Contains(got, "Failed to release lease") {
					t.Errorf("logged errors:\n%s\nwant the failed release", got)
				}
			})
		})
	}
}

func TestDeletedLeaseIsNotReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.run(untilTheEnd)
		server.mutex.Lock()
		server.lease = nil
		server.mutex.Unlock()
		a.stop()
		if err := a.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got := server.holder(); got != "none" {
			t.Errorf("the Lease was created again, held by %q", got)
		}
		if diff := cmp.Diff([]string(nil), a.errors()); diff != "" {
			t.Errorf("logged errors (-want +got):\n%s", diff)
		}
	})
}

func TestReleaseIsRetriedUntilItsDeadline(t *testing.T) {
	for name, failure := range map[string]error{
		"unreachable": errUnreachable,
		// An API server that has just started refuses everything until it knows its roles.
		"refused":  apierrors.NewForbidden(coordinationv1.Resource("leases"), "lease", errors.New("no role")),
		"conflict": apierrors.NewConflict(coordinationv1.Resource("leases"), "lease", errors.New("locked by a webhook")),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a := newCandidate(t, server, "a")
				a.run(untilTheEnd)
				pass(time.Second)
				begin, requests := time.Now(), 0
				a.client.beforeEach(func(context.Context, string) error {
					if requests++; requests > 1000 {
						time.Sleep(time.Minute) // fails the test, which would hang otherwise
					}
					if time.Since(begin) < renewDeadline-time.Second {
						return failure
					}
					return nil
				})
				a.end(t)
				if holder := server.holder(); holder != "" {
					t.Errorf("the Lease is still held by %q", holder)
				}
			})
		})
	}
}

// A process that does not lead ends at once if the API server refuses it the Lease.
func TestRefusedReleaseDelaysOnlyLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		a.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "create" || verb == "update" {
				return apierrors.NewForbidden(coordinationv1.Resource("leases"), "lease", errors.New("no role"))
			}
			return nil
		})
		a.run(never(t))
		pass(leaseDuration)
		told := time.Now()
		a.end(t)
		if took := time.Since(told); took > 0 {
			t.Errorf("it took %v to end", took)
		}
	})
}
