// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestObjectInDeletionIsStillReported holds an object in deletion with a finalizer while
// its Deployment and its Pods change.
func TestObjectInDeletionIsStillReported(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		server := startDaemon(t, "--status-aggregation-interval=100ms")
		rs := k.createServed(t, ns, "a")
		createPod(t, ns, "a-1", "node-1", k.labels("a"), controlledBy(rs))
		k.waitPods(t, ns, "a", "1/1 ready on node-1")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		if err := k.TryPatch(t.Context(), ns, "a", `{"metadata":{"finalizers":["example.com/hold"]}}`); err != nil {
			t.Fatal(err)
		}
		kubectl(t, "-n", ns, "delete", k.Singular, "a", "--wait=false")
		k.waitTerminating(t, ns, "a", 1, `held by finalizers ["example.com/hold"]; Deployment "a" has 1 of 1 replicas available`)

		// Drift is reported, but not corrected.
		kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=3")
		status := []byte(`{"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":2,"availableReplicas":2}}`)
		if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), "a", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		k.waitTerminating(t, ns, "a", 2, `Deployment "a" has 2 of 1 replicas available`)
		createPod(t, ns, "a-2", "node-2", k.labels("a"), controlledBy(rs))
		k.waitPods(t, ns, "a", "2/2 ready on node-1, node-2")
		if k.Kind == icecreams.Kind {
			waitPlacements(t, ns, "a", 2)
			wantPlacementLines(t, server, ns, "a-2", 1)
		}

		// The Deployment is deleted first, as in a foreground deletion.
		kubectl(t, "-n", ns, "delete", "deployment", "a")
		k.waitTerminating(t, ns, "a", 0, "it has no Deployment")
		k.waitPods(t, ns, "a", "none")

		if err := k.TryPatch(t.Context(), ns, "a", `{"metadata":{"finalizers":null}}`); err != nil {
			t.Fatal(err)
		}
		clustertest.WaitUntil(t, "the object is gone", func(ctx context.Context) error {
			_, err := k.Get(ctx, ns, "a")
			if err == nil {
				return errors.New("it still exists")
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		k.Create(t, ns, "last", 1) // once it is Ready, the cache has everything from before
		k.waitCondition(t, ns, "last", "Reconciling", "Progressing")
		events := shared.Audit(t, cluster.ByUserAgent(k.Controller), cluster.InNamespace(ns), isWrite)
		for _, event := range events {
			if call := cluster.Call(event); event.ObjectRef.Resource == "deployments" && call != "create deployments" {
				t.Errorf("%s %s, want no write for an object in deletion", call, event.ObjectRef.Name)
			}
		}
		if got := k.calls(t, ns)["create deployments"]; got != 2 {
			t.Errorf("%d Deployments were created, want one for each of two objects", got)
		}
	})
}

// waitTerminating waits until the status of an object in deletion has this number of
// available replicas and a message with this text.
func (k kind) waitTerminating(t *testing.T, ns, name string, available int32, message string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s reports %q", k.Kind, name, message), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(object.Status.Conditions, "Reconciling")
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "Terminating" || !strings.Contains(c.Message, message) ||
			c.ObservedGeneration != object.Generation || object.Status.AvailableReplicas != available || meta.IsStatusConditionTrue(object.Status.Conditions, "Ready") {
			return fmt.Errorf("status %+v", object.Status)
		}
		return nil
	})
}
