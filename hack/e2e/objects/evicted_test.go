// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestEvictedPodsAreNotCounted evicts all Pods of an object twice. The evicted ones stay, as
// those of a node under pressure do, beside those that replace them.
func TestEvictedPodsAreNotCounted(t *testing.T) {
	const replicas = 3
	ns := framework.NewNamespace(t)
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	for _, k := range framework.Kinds {
		k.Create(t, ns, k.Singular, replicas)
	}
	for round := range 3 {
		for _, k := range framework.Kinds {
			clustertest.WaitUntil(t, "the evicted Pods are counted as failed", func(context.Context) error {
				p := k.MustGet(t, ns, k.Singular).Status.Pods
				if p == nil || int(p.Failed) != round*replicas || int(p.Running) != replicas {
					return fmt.Errorf("status.pods is %+v", p)
				}
				return nil
			})
			k.WaitReady(t, ns, k.Singular, replicas)
			k.WaitPodsReported(t, ns, k.Singular, replicas)
		}
		if round == 2 {
			break
		}
		evict(t, ns)
	}
	wantLines(t, []*framework.Replica{r}, ns, 1)
	r.Stop()
}

// evict evicts all running Pods of a namespace, as a kubelet does.
func evict(t *testing.T, ns string) {
	t.Helper()
	client := framework.Kube().CoreV1().Pods(ns)
	pods, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"status":{"phase":"Failed","reason":"Evicted","conditions":[{"type":"Ready","status":"False"}]}}`)
	for _, pod := range pods.Items {
		_, err := client.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
}
