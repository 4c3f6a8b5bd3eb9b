// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestChangesCostOnlyTheirWrites counts the calls for each kind of change of 30 objects
// while nobody else writes.
func TestChangesCostOnlyTheirWrites(t *testing.T) {
	const count = 30
	all := framework.SideBySide(t)
	forEach := func(do func(k framework.InNamespace, name string)) {
		for _, k := range all {
			for i := range count {
				do(k, fmt.Sprintf("a-%d", i))
			}
		}
	}
	calls := map[string]map[string]int{} // by kind
	for _, k := range all {
		calls[k.Kind.Kind] = map[string]int{}
	}
	costs := func(what string, each func(k framework.InNamespace) []string) {
		t.Helper()
		time.Sleep(2 * time.Second) // no more calls may follow
		for _, k := range all {
			for _, call := range each(k) {
				calls[k.Kind.Kind][call] += count
			}
			if diff := cmp.Diff(calls[k.Kind.Kind], k.Calls(t, k.Ns)); diff != "" {
				t.Fatalf("unexpected calls of %s after: %s (-want +got):\n%s", k.Controller, what, diff)
			}
		}
	}
	nothing := func(framework.InNamespace) []string { return nil }
	scale := func(k framework.InNamespace, name string, replicas int32) {
		if err := k.TryPatch(t.Context(), k.Ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
			t.Fatal(err)
		}
	}
	waitScaled := func(k framework.InNamespace, name string, replicas int32) {
		k.WaitReplicas(t, k.Ns, name, replicas)
		k.WaitCondition(t, k.Ns, name, "Reconciling", "Progressing")
	}
	const workloadControllers = "--controllers=foo,icecream"

	daemon := framework.StartDaemon(t, workloadControllers)
	for _, k := range all {
		k.CatchUp(t)
	}
	forEach(func(k framework.InNamespace, name string) { k.Create(t, k.Ns, name, 1) })
	forEach(func(k framework.InNamespace, name string) {
		k.WaitCondition(t, k.Ns, name, "Reconciling", "Progressing")
	})
	costs("create", func(k framework.InNamespace) []string { return []string{"create deployments", k.PatchStatus()} })
	for _, k := range all {
		scale(k, "a-0", 2)
		waitScaled(k, "a-0", 2)
		calls[k.Kind.Kind]["patch deployments"]++
		calls[k.Kind.Kind][k.PatchStatus()]++
	}
	forEach(func(k framework.InNamespace, name string) { scale(k, name, 3) })
	forEach(func(k framework.InNamespace, name string) { waitScaled(k, name, 3) })
	costs("scale", func(k framework.InNamespace) []string { return []string{"patch deployments", k.PatchStatus()} })
	forEach(func(k framework.InNamespace, name string) {
		if _, err := framework.Kube().AppsV1().Deployments(k.Ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":9}}`),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	forEach(func(k framework.InNamespace, name string) { k.WaitReplicas(t, k.Ns, name, 3) })
	costs("drift", func(framework.InNamespace) []string { return []string{"patch deployments"} })

	// The next daemon syncs all objects, including those of other tests.
	daemon.Stop()
	daemon = framework.StartDaemon(t, workloadControllers)
	admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
	synced := map[string]float64{}
	waitSynced := func(count func(k framework.InNamespace) int) {
		t.Helper()
		for _, k := range all {
			series := fmt.Sprintf(`sample_controller_manager_sync_total{controller=%q,result="success"}`, k.Controller)
			want := synced[k.Resource] + float64(count(k))
			clustertest.WaitUntil(t, "all objects are synced", func(context.Context) error {
				if synced[k.Resource] = daemon.Value(admin, series); synced[k.Resource] < want {
					return fmt.Errorf("%.0f syncs, want %.0f", synced[k.Resource], want)
				}
				return nil
			})
		}
	}
	waitSynced(func(k framework.InNamespace) int { return stored(t, k.Kind) })
	costs("restart", nothing)
	forEach(func(k framework.InNamespace, name string) { k.Annotate(t, k.Ns, name) })
	waitSynced(func(framework.InNamespace) int { return count })
	costs("irrelevant change", nothing)
	for _, k := range all {
		framework.Kubectl(t, "-n", k.Ns, "delete", k.Singular, "--all")
	}
	costs("delete", nothing)

	for _, k := range all {
		events := framework.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.Ns))
		for _, event := range events {
			if code := event.ResponseStatus.Code; code != http.StatusOK && code != http.StatusCreated {
				t.Errorf("%s of %s was refused with %d", cluster.Call(event), event.ObjectRef.Name, code)
			}
		}
	}
}

// TestTerminatingNamespaceIsLeftAlone deletes a Deployment in a terminating namespace. The
// namespace stays, because kube-controller-manager does not run.
func TestTerminatingNamespaceIsLeftAlone(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		framework.StartDaemon(t)
		k.Create(t, ns, "a", 1)
		k.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
		framework.BeReady(t, ns, "a")
		k.WaitCondition(t, ns, "a", "Ready", "Available")
		wantEvents(t, k, ns, "Normal Synced")
		framework.Kubectl(t, "delete", "namespace", ns, "--wait=false")
		clustertest.WaitUntil(t, "nothing can be created", func(ctx context.Context) error {
			if err := tryDeployment(ctx, ns); err == nil {
				return fmt.Errorf("a Deployment was created")
			}
			return nil
		})
		before := k.Calls(t, ns)
		framework.Kubectl(t, "-n", ns, "delete", "deployment", "a")
		k.WaitCondition(t, ns, "a", "Reconciling", "WaitingForDeletion")
		for i := range 5 {
			if err := k.TryPatch(t.Context(), ns, "a", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)  // no more writes may follow
		before["list "+k.Resource]++ // the confirmation
		before["create deployments"]++
		before[k.PatchStatus()]++
		wantCounts(t, k, ns, before)
		wantEvents(t, k, ns, "Normal Synced")
	})
}
