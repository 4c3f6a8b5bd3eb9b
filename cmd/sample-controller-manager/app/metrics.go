// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/lenient"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/supervisor"
	"samplecontroller.io/controller-manager/writes"
)

// metricsNamespace begins the names of all metrics of the daemon's own.
const metricsNamespace = "sample_controller_manager"

// Metrics are those of the daemon's own. What manifests/metrics.md says of them is made
// from this.
type Metrics struct {
	controllers *supervisor.Metrics
	informers   *informers.Metrics
	leadership  *leadership.Metrics
	log         *manager.LogMetrics
	syncs       *reconcile.Metrics
	undecodable *lenient.Metrics
	writes      *writes.Metrics
}

// NewMetrics makes all metrics and registers them.
func NewMetrics(register func(...metrics.Registerable), registerCollectors func(...metrics.StableCollector)) *Metrics {
	return &Metrics{
		controllers: supervisor.NewMetrics(metricsNamespace, registerCollectors),
		informers:   informers.NewMetrics(metricsNamespace, registerCollectors),
		leadership:  leadership.NewMetrics(metricsNamespace, register),
		log:         manager.NewLogMetrics(metricsNamespace, registerCollectors),
		syncs:       reconcile.NewMetrics(metricsNamespace, register),
		undecodable: lenient.NewMetrics(metricsNamespace, registerCollectors),
		writes:      writes.NewMetrics(metricsNamespace, register),
	}
}

// processMetrics are those of the process, which has them once.
var processMetrics = sync.OnceValue(func() *Metrics {
	return NewMetrics(legacyregistry.MustRegister, legacyregistry.CustomMustRegister)
})
