// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestEmptyCacheWritesNothing deletes the CRD of Foos, and re-creates it and them, as a
// restore from a backup does. Their Deployments and Pods stay, because the garbage
// collector does not run.
func TestEmptyCacheWritesNothing(t *testing.T) {
	ownCluster(t)
	const count, perFoo = 10, 2
	ns := newNamespace(t)
	startDaemon(t, "--status-aggregation-interval=5s")
	names := make([]string, count)
	for i := range count {
		names[i] = fmt.Sprintf("a-%d", i)
		rs := foos.createServed(t, ns, names[i])
		for j := range perFoo {
			createPod(t, ns, fmt.Sprintf("%s-%d", names[i], j), "node-1", foos.labels(names[i]), controlledBy(rs))
		}
	}
	rs := icecreams.createServed(t, ns, "untouched")
	createPod(t, ns, "untouched", "node-1", icecreams.labels("untouched"), controlledBy(rs))
	for _, name := range names {
		foos.waitTotal(t, ns, name, perFoo)
	}
	icecreams.waitPods(t, ns, "untouched", "1/1 ready on node-1")
	waitPlacements(t, ns, "untouched", 1)
	icecreams.waitCondition(t, ns, "untouched", "Reconciling", "Progressing")
	untouched := icecreams.status(t, ns, "untouched")

	foos.uninstall(t)
	if err := shared.Cluster().Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	var first *samplev1alpha1.Foo
	clustertest.WaitUntil(t, "Foos are served again", func(ctx context.Context) (err error) {
		first, err = foos.TryStore(ctx, ns, foos.New(names[0], 1))
		if apierrors.IsAlreadyExists(err) {
			t.Fatal("the Foos still exist after the CRD was deleted")
		}
		return err
	})
	told := watchSummaries(t, ns, first.ResourceVersion)
	for i, name := range names {
		foo := first
		if i > 0 {
			foo = foos.Create(t, ns, name, 1)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"Foo","name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`, foos.apiVersion(), name, foo.UID)
		if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for _, name := range names {
		foos.waitTotal(t, ns, name, perFoo)
		foos.waitCondition(t, ns, name, "Reconciling", "Progressing")
	}
	t.Logf("all statuses are complete %v after the restore", time.Since(begin))
	clustertest.WaitUntil(t, "all writes are watched", func(context.Context) error {
		if got := told(); len(got) < count {
			return fmt.Errorf("those of %d Foos", len(got))
		}
		return nil
	})
	for name, totals := range told() {
		for _, total := range totals {
			if total != perFoo {
				t.Errorf("the status of Foo %s had %v Pods over time, want always %d", name, totals, perFoo)
			}
		}
	}
	if diff := cmp.Diff(untouched, icecreams.status(t, ns, "untouched")); diff != "" {
		t.Errorf("the status of an Icecream was changed (-want +got):\n%s", diff)
	}
}

// watchSummaries watches the Foos of a namespace. The returned function returns the total
// numbers of Pods that the status of each has had.
func watchSummaries(t *testing.T, ns, resourceVersion string) func() map[string][]int32 {
	t.Helper()
	w, err := shared.Sample().SamplecontrollerV1alpha1().Foos(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	totals := map[string][]int32{}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			foo, ok := event.Object.(*samplev1alpha1.Foo)
			if !ok || foo.Status.Pods == nil {
				continue
			}
			mutex.Lock()
			totals[foo.Name] = append(totals[foo.Name], foo.Status.Pods.Total)
			mutex.Unlock()
		}
	})
	t.Cleanup(func() {
		w.Stop()
		watching.Wait()
	})
	return func() map[string][]int32 {
		mutex.Lock()
		defer mutex.Unlock()
		seen := map[string][]int32{}
		for name, of := range totals {
			seen[name] = append([]int32(nil), of...)
		}
		return seen
	}
}
