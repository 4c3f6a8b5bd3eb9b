// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"

	"samplecontroller.io/controller-manager/reconcile"
)

// Metrics report what the controllers of a process are doing. They are read at each scrape,
// so they are correct on every replica, leading or not. A nil Metrics does nothing.
type Metrics struct {
	metrics.BaseStableCollector
	state, oldestKey, failing *metrics.Desc

	supervisor atomic.Pointer[Supervisor]
}

// NewMetrics creates the gauges <namespace>_controller_state{controller,state},
// ..._oldest_key_seconds{controller} and ..._failing_objects{controller} and registers them
// with register, usually legacyregistry.CustomMustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(namespace+"_"+name, help, labels, nil, metrics.ALPHA, "")
	}
	m := &Metrics{
		state: desc("controller_state", "1 for the state that a controller is in, 0 for all others, by controller and state "+
			"(Disabled, Standby, Starting, WaitingForAPI, Running, Degraded, Stopping).", "controller", "state"),
		oldestKey: desc("oldest_key_seconds", "How long the longest-waiting object has waited for a worker, by controller; 0 if none waits.", "controller"),
		failing:   desc("failing_objects", "Number of objects whose last sync failed and that are retried with backoff, by controller.", "controller"),
	}
	register(m)
	return m
}

// watch makes the metrics report on a supervisor instead of an earlier one.
func (m *Metrics) watch(s *Supervisor) {
	if m != nil {
		m.supervisor.Store(s)
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{m.state, m.oldestKey, m.failing} {
		descs <- desc
	}
}

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	s := m.supervisor.Load()
	if s == nil {
		return
	}
	now := time.Now()
	for _, status := range s.Status(1) {
		for _, state := range States() {
			is := 0.0
			if status.State == state {
				is = 1
			}
			all <- metrics.NewLazyConstMetric(m.state, metrics.GaugeValue, is, status.Controller, string(state))
		}
		var oldest time.Duration
		failing := 0
		for _, p := range status.Loops {
			oldest = max(oldest, age(p.Waiting, now))
			failing += p.Failing
		}
		all <- metrics.NewLazyConstMetric(m.oldestKey, metrics.GaugeValue, oldest.Seconds(), status.Controller)
		all <- metrics.NewLazyConstMetric(m.failing, metrics.GaugeValue, float64(failing), status.Controller)
	}
}

// age returns the age of the first of the entries.
func age(entries reconcile.Entries, now time.Time) time.Duration {
	if len(entries.First) == 0 {
		return 0
	}
	return now.Sub(entries.First[0].Time)
}
