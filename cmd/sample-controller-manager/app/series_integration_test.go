// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// seriesObjects is the final number of objects. 10,000 take a minute.
var seriesObjects = flag.Int("series-objects", 1000, "number of objects that TestSeriesCountIsIndependentOfObjects creates")

// writtenStatuses is the series that counts the Foo statuses written by foo-controller.
const writtenStatuses = `sample_controller_manager_writes_total{controller="foo-controller",resource="foos/status.samplecontroller.k8s.io",result="written",verb="patch"}`

// TestSeriesCountIsIndependentOfObjects compares the series of 10 objects with those of
// many. All objects name the same foreign Deployment, so that each has a problem to report.
func TestSeriesCountIsIndependentOfObjects(t *testing.T) {
	ns := newNamespace(t)
	kubectl(t, "-n", ns, "create", "deployment", "taken", "--image=httpd")
	server := startDaemon(t)
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	before, made := metric(t, server, admin, writtenStatuses), 0
	create := func(count int) {
		t.Helper()
		errs := make([]error, count)
		workqueue.ParallelizeUntil(t.Context(), 16, count-made, func(i int) {
			_, errs[i] = shared.Sample().SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), &samplev1alpha1.Foo{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foo-%d", made+i)},
				Spec:       samplev1alpha1.FooSpec{DeploymentName: "taken"},
			}, metav1.CreateOptions{})
		})
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		made = count
		clustertest.WaitUntil(t, fmt.Sprintf("%d statuses are written", count), func(context.Context) error {
			if written := metric(t, server, admin, writtenStatuses) - before; int(written) < count {
				return fmt.Errorf("got %v", written)
			}
			return nil
		})
	}

	create(10)
	few := series(t, get(t, server, "/metrics", admin, http.StatusOK))
	for made < *seriesObjects {
		create(min(made+1000, *seriesObjects))
	}
	many := series(t, get(t, server, "/metrics", admin, http.StatusOK))
	if diff := cmp.Diff(sets.List(few), sets.List(many)); diff != "" {
		t.Errorf("series with 10 and with %d objects (-10 +%d):\n%s", made, made, diff)
	}
	if few.Len() < 100 {
		t.Errorf("only %d series", few.Len())
	}
	t.Logf("%d series of our own with 10 and with %d objects", few.Len(), made)
}

// series returns the names and labels of our own series and those of the queues.
func series(t *testing.T, metrics string) sets.Set[string] {
	t.Helper()
	all := sets.New[string]()
	for line := range strings.Lines(metrics) {
		name, _, ok := strings.Cut(line, " ")
		if ok && (strings.HasPrefix(name, "sample_controller_manager_") || strings.HasPrefix(name, "workqueue_")) {
			all.Insert(name)
		}
	}
	return all
}
