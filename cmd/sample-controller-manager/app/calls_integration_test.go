// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestNewFooCostsTwoWrites counts what 100 new Foos cost while nobody else writes.
func TestNewFooCostsTwoWrites(t *testing.T) {
	const count = 100
	ns := newNamespace(t)
	startDaemon(t, "--controllers=foo-controller")
	for i := range count {
		createFoo(t, ns, fmt.Sprintf("foo-%d", i), 1)
	}
	for i := range count {
		waitCondition(t, ns, fmt.Sprintf("foo-%d", i), "Reconciling", "Progressing")
	}
	time.Sleep(2 * time.Second) // in which nothing more is to be written
	wantCounts(t, ns, map[string]int{"create deployments": count, "patch foos/status": count})

	events, err := testCluster.AuditEvents(cluster.ByUserAgent("foo-controller"), cluster.InNamespace(ns))
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
		t.Errorf("the status of %d Foos was written, want that of each of %d once", len(statusWrites), count)
	}
}

// TestTerminatingNamespaceIsLeftAlone deletes a Deployment in a namespace that is
// being deleted, which it stays: kube-controller-manager does not run.
func TestTerminatingNamespaceIsLeftAlone(t *testing.T) {
	ns := newNamespace(t)
	startDaemon(t)
	createFoo(t, ns, "a", 1)
	waitCondition(t, ns, "a", "Reconciling", "Progressing")
	beReady(t, ns, "a")
	waitCondition(t, ns, "a", "Ready", "Available")
	wantEvents(t, ns, "Normal Synced")
	kubectl(t, "delete", "namespace", ns, "--wait=false")
	eventually(t, "nothing can be created", func(ctx context.Context) error {
		if err := tryDeployment(ctx, ns); err == nil {
			return fmt.Errorf("a Deployment can")
		}
		return nil
	})
	before := callsOf(t, ns)
	kubectl(t, "-n", ns, "delete", "deployment", "a")
	waitCondition(t, ns, "a", "Reconciling", "WaitingForDeletion")
	for i := range 5 {
		if err := patchFoo(t.Context(), ns, "a", fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second) // in which nothing more is to be written
	before["list foos"]++       // is it there?
	before["create deployments"]++
	before["patch foos/status"]++
	wantCounts(t, ns, before)
	wantEvents(t, ns, "Normal Synced")
}

// wantCounts compares how many calls foo-controller has made in a namespace.
func wantCounts(t *testing.T, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, callsOf(t, ns)); diff != "" {
		t.Errorf("unexpected calls of foo-controller (-want +got):\n%s", diff)
	}
}
