// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync"

	"k8s.io/component-base/metrics"
)

// DeletionMetrics shows which controllers have stopped deleting. It is read at each scrape, so it is correct
// on every replica, leading or not. A nil DeletionMetrics shows nothing.
type DeletionMetrics struct {
	metrics.BaseStableCollector
	stopped *metrics.Desc

	mutex   sync.Mutex
	budgets map[string]*budget // by controller
}

// NewDeletionMetrics creates the gauge <namespace>_deletions_stopped{controller} and registers it with
// register, usually legacyregistry.CustomMustRegister. Call it once per process.
func NewDeletionMetrics(namespace string, register func(...metrics.StableCollector)) *DeletionMetrics {
	m := &DeletionMetrics{
		stopped: metrics.NewDesc(namespace+"_deletions_stopped", "1 while a controller of the leader deletes nothing because it wanted to "+
			"delete more objects within a minute than --max-deletions-per-minute allows, otherwise 0, by controller.",
			[]string{"controller"}, nil, metrics.ALPHA, ""),
		budgets: map[string]*budget{},
	}
	register(m)
	return m
}

// show shows a budget instead of an earlier one of the controller.
func (m *DeletionMetrics) show(b *budget) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.budgets[b.controller] = b
}

// DescribeWithStability implements metrics.StableCollector.
func (m *DeletionMetrics) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- m.stopped }

// CollectWithStability implements metrics.StableCollector.
func (m *DeletionMetrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	budgets := maps.Clone(m.budgets)
	m.mutex.Unlock()
	for name, b := range budgets {
		stopped := 0.0
		if why, _ := b.state(); why != nil && b.term().Err() == nil {
			stopped = 1
		}
		all <- metrics.NewLazyConstMetric(m.stopped, metrics.GaugeValue, stopped, name)
	}
}
