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
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/server"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// programMetrics are the program's own metrics, in addition to those of the libraries.
type programMetrics struct {
	controllers *controller.Metrics
	informers   *informers.Metrics
	leadership  *leadership.Metrics
	serving     *server.Metrics
	states      *supervisor.Metrics
	config      *configMetrics
	shadow      *plan.Metrics
}

// RegisterMetrics makes the metrics of the named program, and passes all of them to the given
// functions, for a page that lists them. A program that runs registers its own.
func RegisterMetrics(program string, register func(...metrics.Registerable),
	registerCollectors func(...metrics.StableCollector)) {
	newMetrics(program, register, registerCollectors)
}

// newMetrics makes and registers all metrics of the named program. Their names begin with the
// name of the program, with _ instead of -.
func newMetrics(program string, register func(...metrics.Registerable),
	registerCollectors func(...metrics.StableCollector)) *programMetrics {
	namespace := strings.ReplaceAll(program, "-", "_")
	logs.NewMetrics(namespace, registerCollectors)
	return &programMetrics{
		controllers: &controller.Metrics{
			Syncs:     reconcile.NewMetrics(namespace, register),
			Objects:   controller.NewObjectMetrics(namespace, registerCollectors),
			Deletions: controller.NewDeletionMetrics(namespace, registerCollectors),
			Writes:    writes.NewMetrics(namespace, register),
			Pauses:    controller.NewPauseMetrics(namespace, registerCollectors),
		},
		informers:  informers.NewMetrics(namespace, registerCollectors),
		leadership: leadership.NewMetrics(namespace, register),
		serving:    server.NewMetrics(namespace, registerCollectors),
		states:     supervisor.NewMetrics(namespace, registerCollectors),
		config:     newConfigMetrics(namespace, register),
		shadow:     plan.NewMetrics(namespace, registerCollectors),
	}
}

var (
	registered      = map[string]*programMetrics{}
	registeredMutex sync.Mutex
)

// metricsOf returns the metrics of the named program. They are registered once per process.
func metricsOf(program string) *programMetrics {
	registeredMutex.Lock()
	defer registeredMutex.Unlock()
	m := registered[program]
	if m == nil {
		m = newMetrics(program, legacyregistry.MustRegister, legacyregistry.CustomMustRegister)
		registered[program] = m
	}
	return m
}
