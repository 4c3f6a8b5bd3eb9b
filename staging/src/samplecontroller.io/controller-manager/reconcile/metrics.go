// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/component-base/metrics"
)

// Metrics counts and times the syncs of all loops that have [Metrics.Observe] as an observer. The
// series have no object names, so their number is constant.
type Metrics struct {
	total       *metrics.CounterVec
	duration    *metrics.HistogramVec
	eventToDone *metrics.HistogramVec
}

// NewMetrics makes and registers the metrics <namespace>_sync_total{controller,result},
// <namespace>_sync_duration_seconds{controller} and
// <namespace>_event_to_done_seconds{controller}. register is usually
// legacyregistry.MustRegister. Call NewMetrics once in a process.
func NewMetrics(namespace string, register func(...metrics.Registerable)) *Metrics {
	m := &Metrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "sync_total",
			Help:           "Number of syncs, by controller and result (success, requeued, stale, conflict, timeout, error, panic).",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "result"}),
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace:      namespace,
			Name:           "sync_duration_seconds",
			Help:           "Duration of a sync in seconds, by controller.",
			Buckets:        metrics.ExponentialBuckets(0.0001, 4, 10),
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
		eventToDone: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: namespace,
			Name:      "event_to_done_seconds",
			Help:      "Time in seconds from an event until a sync has handled it, including queueing and retries, by controller. Objects found at the start of a term are not counted.",
			// Objectives can only be measured at a boundary, so these are round numbers.
			Buckets:        []float64{0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300},
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
	}
	register(m.total, m.duration, m.eventToDone)
	return m
}

// Prepare creates the series of a controller with value 0. Call it once for each controller, or
// its series are absent until its first sync, and a rate misses the first increase.
func (m *Metrics) Prepare(controller string) {
	for _, result := range results() {
		m.total.WithLabelValues(controller, string(result))
	}
	m.duration.WithLabelValues(controller)
	m.eventToDone.WithLabelValues(controller)
}

// Observe is the [Observer] that updates the metrics: pass it to [WithObserver].
func (m *Metrics) Observe(_ context.Context, outcome Outcome) {
	m.total.WithLabelValues(outcome.Controller, string(outcome.Result)).Inc()
	m.duration.WithLabelValues(outcome.Controller).Observe(outcome.Duration.Seconds())
	if outcome.EventToDone > 0 {
		m.eventToDone.WithLabelValues(outcome.Controller).Observe(outcome.EventToDone.Seconds())
	}
}
