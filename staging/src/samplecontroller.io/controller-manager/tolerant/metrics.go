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

// Metrics counts the undecodable objects that there are. It looks into the caches
// of informers when it is asked, so it is true on every replica, leading or not.
// Series carry no object names, so their number is constant.
type Metrics struct {
	metrics.BaseStableCollector
	objects *metrics.Desc

	mutex    sync.Mutex
	indexers map[string]cache.Indexer // by controller
}

// NewMetrics makes the gauge <namespace>_undecodable_objects{controller} and
// registers it with register, usually legacyregistry.CustomMustRegister. Call it
// once in a process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	m := &Metrics{
		objects: metrics.NewDesc(namespace+"_undecodable_objects",
			"Number of stored objects that cannot be decoded and are left alone, by the controller that they are for.",
			[]string{"controller"}, nil, metrics.ALPHA, ""),
		indexers: map[string]cache.Indexer{},
	}
	register(m)
	return m
}

// undecodable is the name of the index of placeholders, and the only value in it.
const undecodable = "undecodable"

// Watch has the objects of the informer counted as those of the controller, in
// place of those of an earlier informer. It adds an index, which an informer can be
// given but once.
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
