// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestMetricsCountCachedPlaceholders(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.CustomMustRegister)
	expect := func(a, b int) {
		t.Helper()
		want := fmt.Sprintf(`# HELP test_undecodable_objects [ALPHA] Number of stored objects that cannot be decoded and are skipped, by controller.
# TYPE test_undecodable_objects gauge
test_undecodable_objects{controller="a-controller"} %d
test_undecodable_objects{controller="b-controller"} %d
`, a, b)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "test_undecodable_objects"); err != nil {
			t.Error(err)
		}
	}
	watch := func(controller string) cache.Store {
		t.Helper()
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &Thing{}, 0, cache.Indexers{})
		if err := m.Watch(controller, informer); err != nil {
			t.Fatal(err)
		}
		return informer.GetStore()
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	a := watch("a-controller")
	watch("b-controller")
	expect(0, 0)
	must(a.Add(decoded("good", "1")))
	must(a.Add(placeholderFor("bad", "2", badMessage)))
	must(a.Add(placeholderFor("worse", "3", badMessage)))
	expect(2, 0)
	must(a.Update(decoded("bad", "4")))
	expect(1, 0)
	must(a.Delete(placeholderFor("worse", "5", badMessage)))
	expect(0, 0)
	must(a.Update(placeholderFor("good", "6", badMessage)))
	expect(1, 0)
	must(a.Replace([]any{placeholderFor("x", "7", badMessage), placeholderFor("y", "8", badMessage), decoded("z", "9")}, "9"))
	expect(2, 0)
	watch("a-controller") // a manager that was restarted in the same process
	expect(0, 0)
}

func TestInformerIsWatchedOnce(t *testing.T) {
	m := NewMetrics("test", metrics.NewKubeRegistry().CustomMustRegister)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &Thing{}, 0, cache.Indexers{})
	if err := m.Watch("a-controller", informer); err != nil {
		t.Fatal(err)
	}
	if err := m.Watch("b-controller", informer); err == nil {
		t.Error("Watch succeeded for a second controller")
	}
}
