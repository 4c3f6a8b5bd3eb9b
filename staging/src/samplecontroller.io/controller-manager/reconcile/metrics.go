// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/component-base/metrics"
)

// Metrics counts and times the syncs of all loops that have its Observe as
// their observer. Series carry no object names, so their number is constant.
type Metrics struct {
	total       *metrics.CounterVec
	duration    *metrics.HistogramVec
	eventToDone *metrics.HistogramVec
}

// NewMetrics makes the metrics <namespace>_sync_total{controller,result},
// <namespace>_sync_duration_seconds{controller} and
// <namespace>_event_to_done_seconds{controller} and registers them with
// register, usually legacyregistry.MustRegister. Call it once in a process.
func NewMetrics(namespace string, register func(...metrics.Registerable)) *Metrics {
	m := &Metrics{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "sync_total",
			Help:           "Number of syncs by controller and result (success, requeued, stale, conflict, timeout, error, panic).",
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller", "result"}),
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace:      namespace,
			Name:           "sync_duration_seconds",
			Help:           "How long a sync took, by controller.",
			Buckets:        metrics.ExponentialBuckets(0.0001, 4, 10),
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
		eventToDone: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace:      namespace,
			Name:           "event_to_done_seconds",
			Help:           "Time from the event that enqueued an object to the end of the sync that settled it, including waiting and retries, by controller. Objects found at the start of a term are not counted.",
			Buckets:        metrics.ExponentialBuckets(0.001, 4, 10),
			StabilityLevel: metrics.ALPHA,
		}, []string{"controller"}),
	}
	register(m.total, m.duration, m.eventToDone)
	return m
}

// Prepare makes the series of a controller exist, at zero, before its first
// sync: an alert on the absence of a series then means what it says.
func (m *Metrics) Prepare(controller string) {
	for _, result := range Results() {
		m.total.WithLabelValues(controller, string(result))
	}
	m.duration.WithLabelValues(controller)
	m.eventToDone.WithLabelValues(controller)
}

// Observe is the [Observer] that keeps the metrics.
func (m *Metrics) Observe(_ context.Context, outcome Outcome) {
	m.total.WithLabelValues(outcome.Controller, string(outcome.Result)).Inc()
	m.duration.WithLabelValues(outcome.Controller).Observe(outcome.Duration.Seconds())
	if outcome.EventToDone > 0 {
		m.eventToDone.WithLabelValues(outcome.Controller).Observe(outcome.EventToDone.Seconds())
	}
}
