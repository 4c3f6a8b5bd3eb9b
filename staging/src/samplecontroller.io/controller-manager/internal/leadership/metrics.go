// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"time"

	"k8s.io/component-base/metrics"
)

// The values of the label end.
const (
	endReleased  = "released"  // the Lease was released after the last write
	endLost      = "lost"      // the Lease could not be kept
	endAbandoned = "abandoned" // the work did not drain; the Lease is left to expire
)

// Metrics count the terms of a process, in addition to client-go's
// leader_election_master_status. A nil Metrics counts nothing.
type Metrics struct {
	terms      *metrics.CounterVec
	drain      *metrics.Histogram
	handover   *metrics.Histogram
	expiration *metrics.Gauge
	refusal    *metrics.Gauge
}

// NewMetrics creates the metrics <namespace>_leadership_terms_total{end},
// ..._drain_duration_seconds, ..._handover_duration_seconds and
// ..._lease_expiration_timestamp_seconds and ..._lease_refused and registers them with register, usually
// legacyregistry.MustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.Registerable)) *Metrics {
	buckets := metrics.ExponentialBuckets(0.001, 4, 9) // 1 ms to 66 s
	m := &Metrics{
		terms: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: namespace, Subsystem: "leadership", Name: "terms_total",
			Help:           "Number of ended leadership terms, by how they ended (released, lost, abandoned).",
			StabilityLevel: metrics.ALPHA,
		}, []string{"end"}),
		drain: metrics.NewHistogram(&metrics.HistogramOpts{
			Namespace: namespace, Subsystem: "leadership", Name: "drain_duration_seconds",
			Help:           "How long the work of a term took to drain after it was told to stop.",
			Buckets:        buckets,
			StabilityLevel: metrics.ALPHA,
		}),
		handover: metrics.NewHistogram(&metrics.HistogramOpts{
			Namespace: namespace, Subsystem: "leadership", Name: "handover_duration_seconds",
			Help:           "Time from when the Lease was seen to be free until this process held it.",
			Buckets:        buckets,
			StabilityLevel: metrics.ALPHA,
		}),
		expiration: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Subsystem: "leadership", Name: "lease_expiration_timestamp_seconds",
			Help:           "Unix time at which this process takes the Lease unless the holder renews it. 0 if this process holds the Lease or does not wait for it.",
			StabilityLevel: metrics.ALPHA,
		}),
		refusal: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: namespace, Subsystem: "leadership", Name: "lease_refused",
			Help:           "1 while the API server refuses this process its Lease, so that it cannot lead: a permission or the namespace is missing, or the credentials are not accepted. 0 otherwise.",
			StabilityLevel: metrics.ALPHA,
		}),
	}
	register(m.terms, m.drain, m.handover, m.expiration, m.refusal)
	for _, end := range []string{endReleased, endLost, endAbandoned} {
		m.terms.WithLabelValues(end)
	}
	return m
}

func (m *Metrics) ended(end string) {
	if m != nil {
		m.terms.WithLabelValues(end).Inc()
	}
}

// expires records when this process takes the Lease; zero if it does not wait for it.
func (m *Metrics) expires(at time.Time) {
	switch {
	case m == nil:
	case at.IsZero():
		m.expiration.Set(0)
	default:
		m.expiration.Set(float64(at.UnixMilli()) / 1000)
	}
}

// refused records whether the API server refuses this process its Lease.
func (m *Metrics) refused(refused bool) {
	switch {
	case m == nil:
	case refused:
		m.refusal.Set(1)
	default:
		m.refusal.Set(0)
	}
}

func (m *Metrics) drained(took time.Duration) {
	if m != nil {
		m.drain.Observe(took.Seconds())
	}
}

func (m *Metrics) handedOver(took time.Duration) {
	if m != nil {
		m.handover.Observe(took.Seconds())
	}
}
