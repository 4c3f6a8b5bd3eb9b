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
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestNewObjectCostsTwoWrites counts what 100 new objects cost while nobody else writes.
func TestNewObjectCostsTwoWrites(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		const count = 100
		ns := newNamespace(t)
		startDaemon(t, "--controllers="+k.controller)
		for i := range count {
			k.create(t, ns, fmt.Sprintf("a-%d", i), 1)
		}
		for i := range count {
			k.waitCondition(t, ns, fmt.Sprintf("a-%d", i), "Reconciling", "Progressing")
		}
		time.Sleep(2 * time.Second) // in which nothing more is to be written
		k.wantCounts(t, ns, map[string]int{"create deployments": count, k.patchStatus(): count})

		events, err := testCluster.AuditEvents(cluster.ByUserAgent(k.controller), cluster.InNamespace(ns))
		if err != nil {
			t.Fatal(err)
		}
		statusWrites := map[string]int{}
		for _, event := range events {
			if code := event.ResponseStatus.Code; code != http.StatusOK && code != http.StatusCreated {
				t.Errorf("%s of %s was refused with %d", cluster.Call(event), event.ObjectRef.Name, code)
			}
			if event.ObjectRef.Subresource == "status" {
				statusWrites[event.ObjectRef.Name]++
			}
		}
		if len(statusWrites) != count {
			t.Errorf("the status of %d objects was written, want that of each of %d once", len(statusWrites), count)
		}
	})
}

// TestNewObjectCostsThreeWritesOfTheWholeDaemon counts what it costs with all
// controllers: the aggregator says that there are no Pods, and nothing else.
func TestNewObjectCostsThreeWritesOfTheWholeDaemon(t *testing.T) {
	const count = 20
	all := sideBySide(t)
	startDaemon(t)
	for _, k := range all {
		for i := range count {
			k.create(t, k.ns, fmt.Sprintf("a-%d", i), 1)
		}
	}
	for _, k := range all {
		for i := range count {
			k.waitCondition(t, k.ns, fmt.Sprintf("a-%d", i), "Reconciling", "Progressing")
			k.waitPods(t, k.ns, fmt.Sprintf("a-%d", i), "none")
		}
	}
	time.Sleep(2 * time.Second) // in which nothing more is to be written
	for _, k := range all {
		want := map[string]int{}
		for i := range count {
			want[fmt.Sprintf("create deployments a-%d by %s: 201", i, k.controller)] = 1
			want[fmt.Sprintf("%s a-%d by %s: 200", k.patchStatus(), i, k.controller)] = 1
			want[fmt.Sprintf("%s a-%d by %s: 200", k.patchStatus(), i, aggregator)] = 1
		}
		events, err := testCluster.AuditEvents(cluster.InNamespace(k.ns), isWrite, func(event auditv1.Event) bool {
			return strings.HasPrefix(event.UserAgent, "sample-controller-manager/")
		})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, event := range events {
			by := event.UserAgent[strings.LastIndex(event.UserAgent, "/")+1:]
			got[fmt.Sprintf("%s %s by %s: %d", cluster.Call(event), event.ObjectRef.Name, by, event.ResponseStatus.Code)]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected writes for %s (-want +got):\n%s", k.resource, diff)
		}
	}
}

// TestTerminatingNamespaceIsLeftAlone deletes a Deployment in a namespace that is
// being deleted, which it stays: kube-controller-manager does not run.
func TestTerminatingNamespaceIsLeftAlone(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.create(t, ns, "a", 1)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		k.wantEvents(t, ns, "Normal Synced")
		kubectl(t, "delete", "namespace", ns, "--wait=false")
		eventually(t, "nothing can be created", func(ctx context.Context) error {
			if err := tryDeployment(ctx, ns); err == nil {
				return fmt.Errorf("a Deployment can")
			}
			return nil
		})
		before := k.calls(t, ns)
		kubectl(t, "-n", ns, "delete", "deployment", "a")
		k.waitCondition(t, ns, "a", "Reconciling", "WaitingForDeletion")
		for i := range 5 {
			if err := k.patch(t.Context(), ns, "a", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)  // in which nothing more is to be written
		before["list "+k.resource]++ // is it there?
		before["create deployments"]++
		before[k.patchStatus()]++
		k.wantCounts(t, ns, before)
		k.wantEvents(t, ns, "Normal Synced")
	})
}
