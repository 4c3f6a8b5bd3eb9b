// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// PauseMetrics report what is paused. They are read at each scrape. A nil PauseMetrics does nothing.
type PauseMetrics struct {
	metrics.BaseStableCollector
	objects, readable *metrics.Desc

	shared atomic.Pointer[Shared]
}

// NewPauseMetrics creates the gauges <namespace>_paused_objects{controller} and
// <namespace>_pause_namespaces_readable and registers them with register, usually
// legacyregistry.CustomMustRegister. Call it once per process.
func NewPauseMetrics(namespace string, register func(...metrics.StableCollector)) *PauseMetrics {
	m := &PauseMetrics{
		objects: metrics.NewDesc(namespace+"_paused_objects",
			"Number of objects that the leader left alone at their last sync because they, their namespace or the controller is paused, by controller. "+
				"0 on a standby.", []string{"controller"}, nil, metrics.ALPHA, ""),
		readable: metrics.NewDesc(namespace+"_pause_namespaces_readable",
			"1 while the pause annotations of namespaces are read, 0 if not: with --namespace, until they have been listed, and while the API server denies that or fails. "+
				"What was read last counts, unless reading is denied for longer than 10 s. Objects wait 10 s for the first list, unless it is denied. Then annotations are ignored until they can be read.",
			nil, nil, metrics.ALPHA, ""),
	}
	register(m)
	return m
}

// Watch makes the metrics report on the controllers of a process instead of earlier ones.
func (m *PauseMetrics) Watch(s *Shared) {
	if m != nil {
		m.shared.Store(s)
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (m *PauseMetrics) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- m.objects
	descs <- m.readable
}

// CollectWithStability implements metrics.StableCollector.
func (m *PauseMetrics) CollectWithStability(all chan<- metrics.Metric) {
	s := m.shared.Load()
	if s == nil {
		return
	}
	for _, name := range s.pausableNames() {
		all <- metrics.NewLazyConstMetric(m.objects, metrics.GaugeValue, float64(s.PausesOf(name).Objects), name)
	}
	readable := 0.0
	if n := s.namespaces.Load(); n != nil && n.areRead() {
		readable = 1
	}
	all <- metrics.NewLazyConstMetric(m.readable, metrics.GaugeValue, readable)
}
