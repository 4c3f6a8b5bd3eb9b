// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

// putLasting is like put, with another duration.
func (s *apiServer) putLasting(holder string, seconds int32) {
	s.put(holder)
	s.edit(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(seconds) })
}

func TestRenewedLeaseAboveLimitIsNotTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		standby := newCandidate(t, server, "standby")
		server.putLasting("leader", 100000)
		standby.run(never(t))
		for range 100 {
			pass(unlimitedLease - time.Second)
			server.putLasting("leader", 100000)
		}
		standby.end(t)
	})
}

func TestLeaseAboveLimitIsKeptForOwnDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		standby := newCandidate(t, server, "standby", func(c *Config) { c.LeaseDuration = 2 * time.Minute })
		server.putLasting("crashed", 100000)
		var work campaigns
		standby.run(work.lead)
		began := time.Now()
		pass(time.Hour)
		if len(work.begun) != 1 || work.begun[0].Sub(began) != 2*time.Minute {
			t.Errorf("led at %v, want once, 2 minutes after %v", work.begun, began)
		}
		standby.end(t)
	})
}

func TestEmptiedLeaseAboveLimitIsTakenSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.putLasting("", 100000)
		a := newCandidate(t, server, "a")
		var work campaigns
		a.run(work.lead)
		pass(unlimitedLease)
		if len(work.begun) != 1 {
			t.Errorf("%d terms after %v, want 1", len(work.begun), unlimitedLease)
		}
		a.end(t)
	})
}

// The status and a metric show how long this process waits, and for which holder.
func TestLongWaitIsReported(t *testing.T) {
	tests := map[string]struct {
		seconds int32
		wait    time.Duration
	}{
		"ordinary":        {15, 15 * time.Second},
		"longer":          {300, 300 * time.Second},
		"above the limit": {100000, time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				m := NewMetrics("test", metrics.NewKubeRegistry().MustRegister)
				a := newCandidate(t, server, "a", func(c *Config) { c.Metrics = m })
				server.putLasting("b", tc.seconds)
				a.run(untilTheEnd)
				until := time.Now().Add(tc.wait)
				for range 3 { // a renewal restarts the wait
					pass(5 * time.Second)
					server.putLasting("b", tc.seconds)
					until = time.Now().Add(tc.wait)
				}
				pass(10 * time.Second)
				if got, want := a.Status().String(), "b leads since 2000-01-01T00:00:15Z; this process takes the Lease in "+(tc.wait-10*time.Second).String()+" unless it is renewed"; got != want {
					t.Errorf("status is %q, want %q", got, want)
				}
				if got, err := testutil.GetGaugeMetricValue(m.expiration); err != nil || got != float64(until.Unix()) {
					t.Errorf("the metric is %v, %v, want %v", got, err, until.Unix())
				}
				pass(tc.wait)
				if got := a.Status(); !got.Leading || got.Wait != 0 {
					t.Errorf("status is %q, want that this process leads", got)
				}
				if got, err := testutil.GetGaugeMetricValue(m.expiration); err != nil || got != 0 {
					t.Errorf("the metric of the leader is %v, %v, want 0", got, err)
				}
				a.end(t)
			})
		})
	}
}

func TestWaitForDeletedLeaseIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		server.put("b")
		a.run(untilTheEnd)
		server.remove()
		pass(5 * time.Second)
		if got, want := a.Status().String(), "nobody leads; this process takes the Lease in 10s unless it is renewed"; got != want {
			t.Errorf("status is %q, want %q", got, want)
		}
		a.end(t)
	})
}

// The holder does not know yet that somebody edited its Lease.
func TestLeaseWithHolderButWithoutDurationIsHeld(t *testing.T) {
	for name, seconds := range map[string]*int32{"none": nil, "1 s": new(int32(1)), "-1 s": new(int32(-1))} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				a, b := newCandidate(t, server, "a"), newCandidate(t, server, "b")
				a.run(untilTheEnd)
				pass(time.Second)
				both := false
				b.run(func(term *Term) error {
					both = both || a.config.Gate.Check() == nil
					return untilTheEnd(term)
				})
				pass(time.Second)
				a.client.silenceWatch()
				server.edit(func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = seconds })
				pass(time.Minute)
				if both {
					t.Error("b leads while the gate of a is open")
				}
				b.end(t)
				a.end(t)
			})
		})
	}
}
