// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

const (
	// othersCount is how many good Foos are made beside a bad one.
	othersCount = 10
	// looking is for how long is looked whether something happens.
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

	ns, token := framework.NewNamespace(t), framework.DebuggerToken(t, framework.NewNamespace(t))
	r := framework.StartReplica(t).Ready()
	framework.Foos.Create(t, ns, "before", 1)
	framework.Foos.WaitReady(t, ns, "before", 1)
	began := time.Now()
	makeGoodAndBad(t, ns)
	for i := range othersCount {
		framework.Foos.WaitReady(t, ns, fmt.Sprintf("after-%d", i), 1)
	}
	took := time.Since(began)
	rate := syncsWhileLooking(r, token)
	if rate != 0 {
		t.Errorf("%d syncs in %v in which nothing happened", rate, looking)
	}
	r.Stop()
	deleteFoos(t, ns) // or sample-controller would not even start

	peer := framework.OfPeer(t, stockMeetsUndecodable)
	framework.ReportFault(t, framework.FaultRow{ID: "O3", Fault: "a Foo is stored that cannot be decoded",
		Ours: fmt.Sprintf("%d of %d others ready in %v; then %d syncs in %v", othersCount, othersCount, round(took), rate, looking),
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

// syncsWhileLooking returns how many syncs of Foos there are while we look, once the
// Foos have come to rest.
func syncsWhileLooking(r *framework.Replica, token string) int {
	r.T.Helper()
	const series = `sync_duration_seconds_count{controller="foo-controller"}`
	last := -1
	clustertest.WaitUntil(r.T, "the controller of Foos rests", func(context.Context) error {
		now := r.Metric(token, series)
		if now != last {
			last = now
			time.Sleep(looking) // on a busy machine Kubernetes goes on for a while
			return fmt.Errorf("%d syncs so far", now)
		}
		return nil
	})
	time.Sleep(looking)
	return r.Metric(token, series) - last
}

// TestFaultOddValues makes Foos that the API server takes and that hardly anybody means.
// Those that it does not take any more are tested with the daemon alone.
func TestFaultOddValues(t *testing.T) {
	framework.FreeLease(t)
	ns, token := framework.NewNamespace(t), framework.DebuggerToken(t, framework.NewNamespace(t))
	_, err := framework.Kube().CoreV1().ResourceQuotas(ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := framework.StartReplica(t).Ready()
	before := r.Metric(token, `sync_duration_seconds_count{controller="foo-controller"}`)
	framework.Foos.Create(t, ns, "good", 1)
	framework.Foos.WaitReady(t, ns, "good", 1)
	framework.Foos.Declare(t, ns, "none", samplev1alpha1.FooSpec{DeploymentName: "none"})
	framework.Foos.WaitReady(t, ns, "none", 1)
	framework.Foos.CreateNaming(t, ns, "twice", "good")
	framework.Foos.WaitStalled(t, ns, "twice")
	framework.Foos.Declare(t, ns, "most", samplev1alpha1.FooSpec{DeploymentName: "most", Replicas: ptr.To[int32](math.MaxInt32)})
	framework.WaitDeployment(t, ns, "most")
	if got := ptr.Deref(framework.Deployment(t, ns, "most").Spec.Replicas, 0); got != math.MaxInt32 {
		t.Errorf("the Deployment wants %d replicas, want %d", got, math.MaxInt32)
	}
	rate := syncsWhileLooking(r, token)
	all := r.Metric(token, `sync_duration_seconds_count{controller="foo-controller"}`) - before
	const count, mostEach = 4, 20
	if rate > count || all > count*mostEach {
		t.Errorf("%d syncs of %d Foos until they rest and %d in the next %v, want at most %d and %d", all, count, rate, looking, count*mostEach, count)
	}
	framework.Foos.Create(t, ns, "last", 1)
	framework.Foos.WaitReady(t, ns, "last", 1)
	deleteFoos(t, ns)
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{ID: "O4", Fault: "Foos with 2147483647 replicas, none, a name that another has",
		Ours: fmt.Sprintf("each says what it is; %d syncs of %d Foos in all, then %d in %v", all, count, rate, looking), Peer: "not run"})
}
