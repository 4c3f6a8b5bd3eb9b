// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/server"
	"samplecontroller.io/controller-manager/supervisor"
	"samplecontroller.io/controller-manager/writes"
)

// Metrics are the program's own metrics, in addition to those of the libraries.
type Metrics struct {
	controllers *controller.Metrics
	informers   *informers.Metrics
	leadership  *leadership.Metrics
	serving     *server.Metrics
	states      *supervisor.Metrics
}

// NewMetrics makes and registers all metrics of the named program. Their names begin with the
// name of the program, with _ instead of -.
func NewMetrics(program string, register func(...metrics.Registerable),
	registerCollectors func(...metrics.StableCollector)) *Metrics {
	namespace := strings.ReplaceAll(program, "-", "_")
	logs.NewMetrics(namespace, registerCollectors)
	return &Metrics{
		controllers: &controller.Metrics{
			Syncs:   reconcile.NewMetrics(namespace, register),
			Objects: controller.NewObjectMetrics(namespace, registerCollectors),
			Writes:  writes.NewMetrics(namespace, register),
		},
		informers:  informers.NewMetrics(namespace, registerCollectors),
		leadership: leadership.NewMetrics(namespace, register),
		serving:    server.NewMetrics(namespace, registerCollectors),
		states:     supervisor.NewMetrics(namespace, registerCollectors),
	}
}

var (
	registered      = map[string]*Metrics{}
	registeredMutex sync.Mutex
)

// metricsOf returns the metrics of the named program. They are registered once per process.
func metricsOf(program string) *Metrics {
	registeredMutex.Lock()
	defer registeredMutex.Unlock()
	m := registered[program]
	if m == nil {
		m = NewMetrics(program, legacyregistry.MustRegister, legacyregistry.CustomMustRegister)
		registered[program] = m
	}
	return m
}
