// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics/legacyregistry"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// TestSeriesCountIsIndependentOfObjects compares the series of 10 objects with those of many. All objects name the
// same foreign Deployment, so that each has a problem to report.
func TestSeriesCountIsIndependentOfObjects(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentName}})
		made := 0
		seriesOf := func(objects int) []string {
			added := objects - made
			for ; made < objects; made++ {
				e.Create(example(func(f *samplev1alpha1.Foo) { f.Name = fmt.Sprint("foo-", made) }))
			}
			e.Settle()
			if written := len(e.Writes()); written < added { // a first status may meet that of the creation, and conflict
				t.Errorf("%d writes for %d new objects", written, added)
			}
			return sets.List(series(t))
		}
		few := seriesOf(10)
		if diff := cmp.Diff(few, seriesOf(200)); diff != "" || len(few) < 50 {
			t.Errorf("%d series with 10 objects, those with 200 (-10 +200):\n%s", len(few), diff)
		}
	})
}

// series returns the names and labels of our own series and those of the queues.
func series(t *testing.T) sets.Set[string] {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := sets.New[string]()
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "sample_controller_manager_") || strings.HasPrefix(name, "workqueue_") {
			for _, metric := range family.GetMetric() {
				all.Insert(fmt.Sprint(name, metric.GetLabel()))
			}
		}
	}
	return all
}
