// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import "k8s.io/component-base/metrics"

// Metrics counts dropped log lines. The count is read at each scrape, because the log exists
// before the metrics.
type Metrics struct {
	metrics.BaseStableCollector
	dropped *metrics.Desc
}

// NewMetrics creates the counter <namespace>_log_dropped_lines_total and registers it with
// register, usually legacyregistry.CustomMustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	m := &Metrics{dropped: metrics.NewDesc(namespace+"_log_dropped_lines_total",
		"Number of log lines dropped because the log was not read or could not be written.",
		nil, nil, metrics.ALPHA, "")}
	register(m)
	return m
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- m.dropped }

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	all <- metrics.NewLazyConstMetric(m.dropped, metrics.CounterValue, float64(stderr.Dropped()+stdout.Dropped()))
}
