// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
)

// Metrics reports the caches of a [Factory] and the watches that fill them. Values are read
// at each scrape. There are series for each requested resource.
type Metrics struct {
	metrics.BaseStableCollector
	age, objects, served, failing *metrics.Desc

	mutex   sync.Mutex
	factory *Factory
}

// NewMetrics creates the gauges <namespace>_watch_age_seconds{resource},
// <namespace>_informer_objects{resource}, <namespace>_resource_served{resource} and
// <namespace>_informer_failing{resource} and registers them with register, usually
// legacyregistry.CustomMustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	label := []string{"resource"}
	m := &Metrics{
		age: metrics.NewDesc(namespace+"_watch_age_seconds",
			"Seconds since the last event or bookmark on the watch for a resource, or since startup if there was none. Bookmarks arrive about once a minute.",
			label, nil, metrics.ALPHA, ""),
		objects: metrics.NewDesc(namespace+"_informer_objects", "Number of objects of a resource in the cache.",
			label, nil, metrics.ALPHA, ""),
		served: metrics.NewDesc(namespace+"_resource_served",
			"1 if the cache holds what the API server serves of a resource. 0 if the API is absent, permission to read is missing, or the cache has not synced.",
			label, nil, metrics.ALPHA, ""),
		failing: metrics.NewDesc(namespace+"_informer_failing",
			"1 if the last list or watch of a resource failed and none has succeeded since, 0 otherwise. An API that is not installed and a missing permission are not failures: see resource_served.",
			label, nil, metrics.ALPHA, ""),
	}
	register(m)
	return m
}

// Watch makes the metrics report the given factory instead of an earlier one. Without a factory there
// are no series. It is safe for concurrent use.
func (m *Metrics) Watch(f *Factory) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.factory = f
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- m.age
	descs <- m.objects
	descs <- m.served
	descs <- m.failing
}

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	f := m.factory
	m.mutex.Unlock()
	if f == nil {
		return
	}
	for _, r := range f.Resources() {
		sign := r.LastSign
		if sign.IsZero() {
			sign = f.made
		}
		all <- metrics.NewLazyConstMetric(m.age, metrics.GaugeValue, time.Since(sign).Seconds(), r.Name())
		all <- metrics.NewLazyConstMetric(m.objects, metrics.GaugeValue, float64(r.Objects), r.Name())
		all <- metrics.NewLazyConstMetric(m.served, metrics.GaugeValue, oneIf(r.Served), r.Name())
		all <- metrics.NewLazyConstMetric(m.failing, metrics.GaugeValue, oneIf(r.Failure != nil), r.Name())
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
