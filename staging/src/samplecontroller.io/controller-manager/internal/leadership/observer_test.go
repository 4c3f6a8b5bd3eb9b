// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"
)

// leaseOf returns a Lease as a watch event contains it.
func leaseOf(holder, version string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: version},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15)},
	}
}

func TestLateObservationIsIgnored(t *testing.T) {
	var told []string
	o := newObserver(Config{Client: &client{}, Name: "lease", Identity: "me", LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline}, func(_ context.Context, lease *coordinationv1.Lease) {
		told = append(told, held(lease))
	})
	o.observe(t.Context(), leaseOf("a", "8"), false)
	o.observe(t.Context(), leaseOf("b", "10"), false) // one digit more
	o.observe(t.Context(), leaseOf("a", "9"), false)
	o.observe(t.Context(), leaseOf("a", "9"), true)
	if got := held(o.seen()); got != "b" {
		t.Errorf("the Lease is held by %q, want b", got)
	}
	o.observe(t.Context(), leaseOf("b", "11"), true)
	o.observe(t.Context(), leaseOf("b", "10"), false)
	if lease := o.seen(); lease != nil {
		t.Errorf("the Lease is %v, want none", lease)
	}
	if got, want := strings.Join(told, " "), "a b "; got != want {
		t.Errorf("notified of the holders %q, want %q", got, want)
	}
}

func TestLateReadIsIgnored(t *testing.T) {
	for name, read := range map[string]*coordinationv1.Lease{"of a former holder": leaseOf("a", "8"), "of no Lease": nil} {
		t.Run(name, func(t *testing.T) {
			var o *observer
			watch := func(ctx context.Context, _ string) error {
				o.observe(ctx, leaseOf("b", "10"), false)
				return nil
			}
			o = newObserver(Config{
				Client: &client{server: &apiServer{lease: read}, before: watch, after: noHook},
				Name:   "lease", Identity: "me", LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
			}, func(context.Context, *coordinationv1.Lease) {})
			o.observe(t.Context(), leaseOf("a", "7"), false)
			if _, err := o.read(t.Context()); (err != nil) != (read == nil) {
				t.Error(err)
			}
			if got := held(o.seen()); got != "b" {
				t.Errorf("the Lease is held by %q, want b, which was seen during the read", got)
			}
		})
	}
}

func TestEmptiedLeaseIsNotTakenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		server.put("")
		a := newCandidate(t, server, "a")
		var work campaigns
		began := time.Now()
		a.run(work.lead)
		pass(time.Hour)
		if len(work.begun) != 1 || work.begun[0].Sub(began) != leaseDuration {
			t.Errorf("led at %v, want %v after %v: the former holder may not know yet", work.begun, leaseDuration, began)
		}
		a.end(t)
	})
}

// The handover time starts when the Lease is free, and again if another process was faster.
func TestHandoversAreMeasured(t *testing.T) {
	inBubble(t, func(t *testing.T, server *apiServer) {
		registry := metrics.NewKubeRegistry()
		a := newCandidate(t, server, "a", func(c *Config) { c.Metrics = NewMetrics("test", registry.MustRegister) })
		server.put("b")
		a.run(untilTheEnd)
		a.client.beforeEach(func(_ context.Context, verb string) error {
			if verb == "update" {
				a.client.beforeEach(noHook)
				server.put("c") // c is faster
			}
			return nil
		})
		pass(time.Hour)
		got, err := testutil.GetHistogramMetricValue(a.config.Metrics.handover.ObserverMetric)
		if err != nil || got != 0 {
			t.Errorf("handovers took %v s, %v, want 0: as soon as the Lease was free", got, err)
		}
		if n, err := testutil.GetHistogramMetricCount(a.config.Metrics.handover.ObserverMetric); n != 1 || err != nil {
			t.Errorf("%d handovers, %v, want 1", n, err)
		}
		a.end(t)
	})
}
