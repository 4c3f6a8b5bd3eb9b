// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// TestObjectMetrics counts ConfigMaps by a state that they have in their data.
func TestObjectMetrics(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	c := &Context{shared: &Shared{Metrics: Metrics{Objects: NewObjectMetrics("test", registry.CustomMustRegister)}}}
	ready, stalled := State{"Ready", "Available"}, State{"Stalled", "WriteDenied"}
	count := func() cache.Store {
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.ConfigMap{}, 0, cache.Indexers{})
		c.CountObjects(corev1.Resource("configmaps"), informer, []State{ready, stalled}, func(obj any) State {
			data := obj.(*corev1.ConfigMap).Data
			return State{data["condition"], data["reason"]}
		})
		return informer.GetStore()
	}
	expect := func(ofReady, ofStalled int) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("%v, %v", families, err)
		}
		want := fmt.Sprintf(`# HELP test_objects %s
# TYPE test_objects gauge
test_objects{condition="Ready",reason="Available",resource="configmaps"} %d
test_objects{condition="Stalled",reason="WriteDenied",resource="configmaps"} %d
`, families[0].GetHelp(), ofReady, ofStalled)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "test_objects"); err != nil {
			t.Error(err)
		}
	}
	object := func(name string, s State) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Data: map[string]string{"condition": s.Condition, "reason": s.Reason}}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	store := count()
	expect(0, 0)
	must(store.Add(object("a", ready)))
	must(store.Add(object("b", ready)))
	must(store.Add(object("c", stalled)))
	must(store.Add(object("d", State{"Enchanted", "ByMagic"}))) // not declared
	expect(2, 1)
	must(store.Update(object("a", stalled)))
	expect(1, 2)
	must(store.Delete(object("b", ready)))
	expect(0, 2)
	count() // a program that was restarted in the same process
	expect(0, 0)

	none := &Context{shared: &Shared{}} // without metrics
	none.CountObjects(corev1.Resource("configmaps"), nil, nil, nil)
}

// TestPanicInStateCountsNothing also checks that the process survives a scrape.
func TestPanicInStateCountsNothing(t *testing.T) {
	counted := countedObjects{store: cache.NewStore(cache.MetaNamespaceKeyFunc), stateOf: func(obj any) State {
		if obj.(*corev1.ConfigMap).Name == "odd" {
			panic("an unknown state")
		}
		return State{"Ready", "Available"}
	}}
	for _, name := range []string{"a", "odd"} {
		if err := counted.store.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := counted.count()[State{"Ready", "Available"}]; got != 1 {
		t.Errorf("%d objects are counted, want 1", got)
	}
}
