// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

// State is what the status of an object says of it: the condition that is True, and its
// reason.
type State struct {
	// Condition is the type of the condition, such as Ready. Reason is its reason, in
	// UpperCamelCase. Both are values of labels.
	Condition, Reason string
}

// ObjectMetrics counts the cached objects by state. It reads the caches of informers at each
// scrape, so it is correct on every replica, leading or not. The series of a resource are the
// states that its controller declares, so their number is constant. A nil ObjectMetrics counts
// nothing.
type ObjectMetrics struct {
	metrics.BaseStableCollector
	objects *metrics.Desc

	mutex   sync.Mutex
	counted map[string]countedObjects // by resource
}

type countedObjects struct {
	store   cache.Store
	states  []State
	stateOf func(any) State
}

// NewObjectMetrics creates the gauge <namespace>_objects{resource,condition,reason} and
// registers it with register, usually legacyregistry.CustomMustRegister. Call it once per
// process.
func NewObjectMetrics(namespace string, register func(...metrics.StableCollector)) *ObjectMetrics {
	m := &ObjectMetrics{
		objects: metrics.NewDesc(namespace+"_objects",
			"Number of objects in the cache, by resource, by the condition that is True (Ready, Reconciling, Stalled) and by its reason. Each object is counted once. Paused: the object is paused, whatever the rest of its status says. "+
				"Unobserved: the status is not yet for the current generation. Undecodable: the stored object cannot be decoded. Other: a reason of another version of the program.",
			[]string{"resource", "condition", "reason"}, nil, metrics.ALPHA, ""),
		counted: map[string]countedObjects{},
	}
	register(m)
	return m
}

// CountObjects counts the objects of the informer in the metric of objects by state. stateOf
// returns the state of a cached object, which it must not change. It is called for each object
// at each scrape, so it must be fast; if it panics, the object is not counted. Nor are objects in a
// state that is not in states. Another call for the resource replaces this one.
func (c *Context) CountObjects(resource schema.GroupResource, informer cache.SharedIndexInformer, states []State,
	stateOf func(obj any) State) {
	m := c.shared.Metrics.Objects
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.counted[resource.String()] = countedObjects{informer.GetStore(), states, stateOf}
}

// DescribeWithStability implements metrics.StableCollector.
func (m *ObjectMetrics) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- m.objects }

// CollectWithStability implements metrics.StableCollector.
func (m *ObjectMetrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	counted := maps.Clone(m.counted)
	m.mutex.Unlock()
	for resource, c := range counted {
		counts := c.count()
		for _, state := range c.states {
			all <- metrics.NewLazyConstMetric(m.objects, metrics.GaugeValue, float64(counts[state]), resource, state.Condition,
				state.Reason)
		}
	}
}

// count returns the number of objects by state. The store is locked only while its list of
// pointers is copied.
func (c countedObjects) count() map[State]int {
	counts := make(map[State]int, len(c.states))
	for _, obj := range c.store.List() {
		counts[c.state(obj)]++
	}
	return counts
}

// state returns the state of an object, none if stateOf panics. A panic in a collector would end
// the process.
func (c countedObjects) state(obj any) (s State) {
	defer func() {
		if value := recover(); value != nil {
			klog.Background().Error(fmt.Errorf("panic: %v\n%s", value, debug.Stack()), "Counting an object failed")
			s = State{}
		}
	}()
	return c.stateOf(obj)
}
