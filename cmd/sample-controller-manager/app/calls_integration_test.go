// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestChangesCostOnlyTheirWrites counts the calls for each kind of change of 30 objects
// while nobody else writes.
func TestChangesCostOnlyTheirWrites(t *testing.T) {
	const count = 30
	all := sideBySide(t)
	forEach := func(do func(k inNamespace, name string)) {
		for _, k := range all {
			for i := range count {
				do(k, fmt.Sprintf("a-%d", i))
			}
		}
	}
	calls := map[string]map[string]int{} // by kind
	for _, k := range all {
		calls[k.Kind] = map[string]int{}
	}
	costs := func(what string, each func(k inNamespace) []string) {
		t.Helper()
		time.Sleep(2 * time.Second) // no more calls may follow
		for _, k := range all {
			for _, call := range each(k) {
				calls[k.Kind][call] += count
			}
			if diff := cmp.Diff(calls[k.Kind], k.calls(t, k.ns)); diff != "" {
				t.Fatalf("unexpected calls of %s after: %s (-want +got):\n%s", k.Controller, what, diff)
			}
		}
	}
	nothing := func(inNamespace) []string { return nil }
	scale := func(k inNamespace, name string, replicas int32) {
		if err := k.TryPatch(t.Context(), k.ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)); err != nil {
			t.Fatal(err)
		}
	}
	waitScaled := func(k inNamespace, name string, replicas int32) {
		k.waitReplicas(t, k.ns, name, replicas)
		k.waitCondition(t, k.ns, name, "Reconciling", "Progressing")
	}
	const workloadControllers = "--controllers=foo,icecream"

	daemon := startDaemon(t, workloadControllers)
	for _, k := range all {
		k.catchUp(t)
	}
	forEach(func(k inNamespace, name string) { k.Create(t, k.ns, name, 1) })
	forEach(func(k inNamespace, name string) { k.waitCondition(t, k.ns, name, "Reconciling", "Progressing") })
	costs("create", func(k inNamespace) []string { return []string{"create deployments", k.patchStatus()} })
	for _, k := range all {
		scale(k, "a-0", 2)
		waitScaled(k, "a-0", 2)
		calls[k.Kind]["patch deployments"]++
		calls[k.Kind][k.patchStatus()]++
	}
	forEach(func(k inNamespace, name string) { scale(k, name, 3) })
	forEach(func(k inNamespace, name string) { waitScaled(k, name, 3) })
	costs("scale", func(k inNamespace) []string { return []string{"patch deployments", k.patchStatus()} })
	forEach(func(k inNamespace, name string) {
		if _, err := shared.Kube().AppsV1().Deployments(k.ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	forEach(func(k inNamespace, name string) { k.waitReplicas(t, k.ns, name, 3) })
	costs("drift", func(inNamespace) []string { return []string{"patch deployments"} })

	if err := daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	// All objects, including those of other tests, are synced now and every second.
	daemon = startDaemon(t, workloadControllers, "--min-resync-period=1s")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	for _, k := range all {
		synced := fmt.Sprintf(`sample_controller_manager_sync_total{controller=%q,result="success"}`, k.Controller)
		before, objects := metric(t, daemon, admin, synced), k.count(t)
		clustertest.WaitUntil(t, "all objects are resynced repeatedly", func(context.Context) error {
			if syncs := metric(t, daemon, admin, synced) - before; int(syncs) < 4*objects {
				return fmt.Errorf("%.0f syncs of %d objects", syncs, objects)
			}
			return nil
		})
	}
	costs("restart and resync", nothing)
	for _, k := range all {
		kubectl(t, "-n", k.ns, "delete", k.Singular, "--all")
	}
	costs("delete", nothing)

	for _, k := range all {
		events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(k.ns))
		for _, event := range events {
			if code := event.ResponseStatus.Code; code != http.StatusOK && code != http.StatusCreated {
				t.Errorf("%s of %s was refused with %d", cluster.Call(event), event.ObjectRef.Name, code)
			}
		}
	}
}

// TestNewObjectCostsThreeWrites counts the writes with all controllers. That of the
// aggregator reports that there are no Pods.
func TestNewObjectCostsThreeWrites(t *testing.T) {
	const count = 20
	all := sideBySide(t)
	startDaemon(t)
	for _, k := range all {
		for i := range count {
			k.Create(t, k.ns, fmt.Sprintf("a-%d", i), 1)
		}
	}
	for _, k := range all {
		for i := range count {
			k.waitCondition(t, k.ns, fmt.Sprintf("a-%d", i), "Reconciling", "Progressing")
			k.waitPods(t, k.ns, fmt.Sprintf("a-%d", i), "none")
		}
	}
	time.Sleep(2 * time.Second) // no more writes may follow
	for _, k := range all {
		want := map[string]int{}
		for i := range count {
			want[fmt.Sprintf("create deployments a-%d by %s: 201", i, k.Controller)] = 1
			want[fmt.Sprintf("%s a-%d by %s: 200", k.patchStatus(), i, k.Controller)] = 1
			want[fmt.Sprintf("%s a-%d by %s: 200", k.patchStatus(), i, aggregator)] = 1
		}
		events := shared.Audit(t, cluster.InNamespace(k.ns), isWrite, func(event auditv1.Event) bool {
			return strings.HasPrefix(event.UserAgent, "sample-controller-manager/")
		})
		got := map[string]int{}
		for _, event := range events {
			by := event.UserAgent[strings.LastIndex(event.UserAgent, "/")+1:]
			got[fmt.Sprintf("%s %s by %s: %d", cluster.Call(event), event.ObjectRef.Name, by, event.ResponseStatus.Code)]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected writes for %s (-want +got):\n%s", k.Resource, diff)
		}
	}
}

// TestTerminatingNamespaceIsLeftAlone deletes a Deployment in a terminating namespace. The
// namespace stays, because kube-controller-manager does not run.
func TestTerminatingNamespaceIsLeftAlone(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.Create(t, ns, "a", 1)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		k.wantEvents(t, ns, "Normal Synced")
		kubectl(t, "delete", "namespace", ns, "--wait=false")
		clustertest.WaitUntil(t, "nothing can be created", func(ctx context.Context) error {
			if err := tryDeployment(ctx, ns); err == nil {
				return fmt.Errorf("a Deployment was created")
			}
			return nil
		})
		before := k.calls(t, ns)
		kubectl(t, "-n", ns, "delete", "deployment", "a")
		k.waitCondition(t, ns, "a", "Reconciling", "WaitingForDeletion")
		for i := range 5 {
			if err := k.TryPatch(t.Context(), ns, "a", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)  // no more writes may follow
		before["list "+k.Resource]++ // the confirmation
		before["create deployments"]++
		before[k.patchStatus()]++
		k.wantCounts(t, ns, before)
		k.wantEvents(t, ns, "Normal Synced")
	})
}
