// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

// Metrics counts undecodable objects. It reads the caches of informers at each scrape, so it
// is correct on every replica, leading or not. Series carry no object names, so their number
// is constant.
type Metrics struct {
	metrics.BaseStableCollector
	objects *metrics.Desc

	mutex    sync.Mutex
	indexers map[string]cache.Indexer // by controller
}

// NewMetrics creates the gauge <namespace>_undecodable_objects{controller} and registers it
// with register, usually legacyregistry.CustomMustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	m := &Metrics{
		objects: metrics.NewDesc(namespace+"_undecodable_objects",
			"Number of stored objects that cannot be decoded and are skipped, by controller.",
			[]string{"controller"}, nil, metrics.ALPHA, ""),
		indexers: map[string]cache.Indexer{},
	}
	register(m)
	return m
}

// undecodable is the name of the index of placeholders, and its only value.
const undecodable = "undecodable"

// Watch counts the undecodable objects of the informer for the controller, instead of those
// of an earlier informer. It adds an index, so it fails for an informer that is already
// watched.
func (m *Metrics) Watch(controller string, informer cache.SharedIndexInformer) error {
	err := informer.AddIndexers(cache.Indexers{undecodable: func(obj any) ([]string, error) {
		if object, err := meta.Accessor(obj); err == nil && DecodeError(object) != nil {
			return []string{undecodable}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return fmt.Errorf("indexing undecodable objects of %s: %w", controller, err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.indexers[controller] = informer.GetIndexer()
	return nil
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- m.objects }

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for controller, indexer := range m.indexers {
		keys, _ := indexer.IndexKeys(undecodable, undecodable) // the index exists
		all <- metrics.NewLazyConstMetric(m.objects, metrics.GaugeValue, float64(len(keys)), controller)
	}
}
