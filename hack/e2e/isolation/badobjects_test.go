// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

const (
	// othersCount is how many good Foos are made beside a bad one.
	othersCount = 10
	// looking is for how long sample-controller may serve the others.
	looking = 5 * time.Second
)

// TestFaultUndecodableFoo stores a Foo that cannot be decoded while the daemon serves Foos.
func TestFaultUndecodableFoo(t *testing.T) {
	framework.FreeLease(t)
	framework.RestoreCRDs(t)
	framework.Kubectl(t, "patch", "crd", "foos.samplecontroller.k8s.io", "--type=json", `--patch=[{"op":"replace",
		"path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deploymentName","value":{"x-kubernetes-preserve-unknown-fields":true}}]`)
	clustertest.WaitUntil(t, "a deploymentName may be anything", func(ctx context.Context) error {
		return storeBad(ctx, metav1.NamespaceDefault, metav1.DryRunAll)
	})

	ns := framework.NewNamespace(t)
	r := framework.StartReplica(t).Ready()
	framework.Foos.Create(t, ns, "before", 1)
	framework.Foos.WaitReady(t, ns, "before", 1)
	began := time.Now()
	makeGoodAndBad(t, ns)
	for i := range othersCount {
		framework.Foos.WaitReady(t, ns, fmt.Sprintf("after-%d", i), 1)
	}
	took := time.Since(began)
	r.Stop()
	deleteFoos(t, ns) // or sample-controller would not even start

	peer := framework.OfPeer(t, stockMeetsUndecodable)
	framework.ReportFault(t, framework.FaultRow{ID: "O3", Fault: "a Foo is stored that cannot be decoded",
		Ours: fmt.Sprintf("%d of %d others ready in %v", othersCount, othersCount, round(took)),
		Peer: peer})
}

// stockMeetsUndecodable says what becomes of sample-controller beside such a Foo.
func stockMeetsUndecodable(t *testing.T) string {
	t.Helper()
	ns := framework.NewNamespace(t)
	theirs := framework.StartSampleController(t)
	framework.Foos.Create(t, ns, "before", 1)
	framework.WaitDeployment(t, ns, "before")
	makeGoodAndBad(t, ns)
	time.Sleep(looking)
	list, err := framework.Kube().AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := len(list.Items) - 1
	if served != 0 {
		t.Errorf("sample-controller has served %d Foos made after one that it cannot decode: it is better than we say", served)
	}
	theirs.Stop()
	deleteFoos(t, ns) // nobody else could list Foos
	return fmt.Sprintf("sample-controller: %d of %d others have a Deployment after %v", served, othersCount, looking)
}

// makeGoodAndBad makes a Foo that cannot be decoded and then others.
func makeGoodAndBad(t *testing.T, ns string) {
	t.Helper()
	if err := storeBad(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for i := range othersCount {
		framework.Foos.Create(t, ns, fmt.Sprintf("after-%d", i), 1)
	}
}

func storeBad(ctx context.Context, ns string, dryRun ...string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"deploymentName": []any{"bad"}}}}
	object.SetGroupVersionKind(framework.Foos.GroupVersionKind)
	object.SetName("bad")
	_, err := framework.Foos.In(ns).Create(ctx, object, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// deleteFoos deletes all Foos of a namespace.
func deleteFoos(t *testing.T, ns string) {
	t.Helper()
	if err := framework.Foos.In(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}
