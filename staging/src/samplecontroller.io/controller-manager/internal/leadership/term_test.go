// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

// The holder stays the same, so the Lease must not show a transition.
func TestReacquiredLeaseHasNoTransition(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		a := newCandidate(t, server, "a")
		var work campaigns
		a.run(work.lead)
		acquired := time.Now()
		a.client.cutOff()
		pass(leaseDuration)
		a.client.heal()
		pass(time.Minute)
		lease, err := server.get()
		if err != nil {
			t.Fatal(err)
		}
		if len(work.terms) != 2 || ptr.Deref(lease.Spec.HolderIdentity, "") != "a" {
			t.Fatalf("%d terms, Lease held by %q, want a second term of a", len(work.terms), server.holder())
		}
		if got := ptr.Deref(lease.Spec.LeaseTransitions, 0); got != 0 {
			t.Errorf("%d transitions, want 0", got)
		}
		if got := lease.Spec.AcquireTime.Time; !got.Equal(acquired) {
			t.Errorf("acquired at %v, want %v", got, acquired)
		}
		a.end(t)
	})
}

func TestDrainDurationIsMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		lead  func(*Term) error
		count uint64
		sum   float64
	}{
		"work that drains":         {(&campaigns{drain: 4 * time.Second}).lead, 1, 4},
		"work that ends by itself": {func(*Term) error { return nil }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *apiServer) {
				registry := metrics.NewKubeRegistry()
				a := newCandidate(t, server, "a", func(c *Config) { c.Metrics = NewMetrics("test", registry.MustRegister) })
				a.run(tc.lead)
				pass(time.Minute)
				a.end(t)
				vec, err := testutil.GetHistogramVecFromGatherer(registry, "test_leadership_drain_duration_seconds", nil)
				if err != nil {
					t.Fatal(err)
				}
				if count, sum := vec.GetAggregatedSampleCount(), vec.GetAggregatedSampleSum(); count != tc.count || sum != tc.sum {
					t.Errorf("%d drains of %v s together, want %d of %v s", count, sum, tc.count, tc.sum)
				}
			})
		})
	}
}
