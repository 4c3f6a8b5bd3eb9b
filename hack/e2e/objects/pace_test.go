// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestReplacedPodsCostOneWriteASecond deletes Pods of an Icecream, so that its readiness flaps and
// new Pods are placed all the time.
func TestReplacedPodsCostOneWriteASecond(t *testing.T) {
	const replicas, replaced = 100, 60
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	r := framework.StartReplica(t).Ready()
	createIcecream(t, ns, "a", replicas)
	framework.Icecreams.WaitReady(t, ns, "a", replicas)
	pods, err := framework.Kube().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{Limit: replaced})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if err := framework.Kube().CoreV1().Pods(ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	waitIcecream(t, ns, "a", replicas)
	framework.Icecreams.WaitReady(t, ns, "a", replicas)
	framework.Icecreams.WaitPodsReported(t, ns, "a", replicas)

	for _, controller := range []string{framework.Icecreams.Controller, framework.Aggregator} {
		var at []time.Time
		for _, event := range framework.Audit(t, cluster.ByUserAgent(controller), cluster.InNamespace(ns)) {
			if cluster.Call(event) == "patch icecreams/status" && event.ResponseStatus.Code == http.StatusOK {
				at = append(at, event.RequestReceivedTimestamp.Time)
			}
		}
		slices.SortFunc(at, time.Time.Compare)
		// Each pair of writes bounds those between them.
		for i := range at {
			for j := i + 1; j < len(at); j++ {
				if took := at[j].Sub(at[i]); j-i+1 > int((took+100*time.Millisecond)/time.Second)+2 {
					t.Fatalf("%s wrote the status %d times in %v, want at most one write a second and two more", controller, j-i+1, took)
				}
			}
		}
		t.Logf("%s wrote the status %d times", controller, len(at))
	}
	clustertest.WaitUntil(t, "Events of both sources are recorded", func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Icecream"})
		if err != nil {
			return err
		}
		got := sets.New[string]()
		for _, event := range events.Items {
			got.Insert(event.Source.Component + " " + event.Reason)
		}
		if want := sets.New("icecream-controller Synced", "icecream-controller-placement PodsScheduled"); !got.IsSuperset(want) {
			return fmt.Errorf("Events: %v, want %v", sets.List(got), sets.List(want))
		}
		return nil
	})
	r.Stop()
}
