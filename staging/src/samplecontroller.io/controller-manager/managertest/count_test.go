// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
)

// TestObjectsAreCounted reads the metric of objects by state.
func TestObjectsAreCounted(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		b := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		states := []controller.State{{Condition: "Ready"}, {Condition: "Stalled", Reason: "Empty"}}
		b.Count(states, func(m *corev1.ConfigMap) controller.State {
			if len(m.Data) == 0 {
				return controller.State{Condition: "Stalled", Reason: "Empty"}
			}
			return controller.State{Condition: "Ready"}
		})
		return b.Reconcile(nothing)
	})
	const ns = "object-counts"
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		expectCounts := func(want ...string) {
			t.Helper()
			e.Settle()
			expect(t, "objects", objectCounts(t), want...)
		}
		expectCounts("Ready  0", "Stalled Empty 0")
		other := owner(ns, nil)
		other.Name = "other"
		e.Create(owner(ns, nil), other, configMapOf(ns, "not-selected"))
		expectCounts("Ready  0", "Stalled Empty 2")
		Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		expectCounts("Ready  1", "Stalled Empty 1")
		e.Delete(other)
		expectCounts("Ready  1", "Stalled Empty 0")
	}, "--namespace="+ns)
}

// objectCounts returns the number of ConfigMaps in each state.
func objectCounts(t *testing.T) (counts []string) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "test_objects" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["resource"] == "configmaps" {
				state := strings.Join([]string{labels["condition"], labels["reason"]}, " ")
				counts = append(counts, fmt.Sprint(state, " ", m.GetGauge().GetValue()))
			}
		}
	}
	return counts
}
