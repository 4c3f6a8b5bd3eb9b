// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestUnavailableReplicasStallDespiteRestart makes replicas unavailable after the rollout. The time
// since when they are is in the status, so a new process does not begin again.
func TestUnavailableReplicasStallDespiteRestart(t *testing.T) {
	const deadline = 5 * time.Second
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		server := startDaemon(t)
		k.Create(t, ns, "a", 2)
		k.waitReplicas(t, ns, "a", 2)
		kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", fmt.Sprintf(`{"spec":{"progressDeadlineSeconds":%.0f}}`, deadline.Seconds()))
		beComplete(t, ns, "a", 2)
		k.waitCondition(t, ns, "a", "Ready", "Available")
		k.waitUnavailableSince(t, ns, "a", 2, false)

		beComplete(t, ns, "a", 1)
		since := k.waitUnavailableSince(t, ns, "a", 1, true).Status.UnavailableSince
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		beComplete(t, ns, "a", 0) // fewer, which the new process writes
		startDaemon(t)
		if now := k.waitUnavailableSince(t, ns, "a", 0, true).Status.UnavailableSince; !now.Equal(since) {
			t.Errorf("unavailable since %v after a restart, want still %v", now, since)
		}
		object := k.waitCondition(t, ns, "a", "Stalled", "ReplicasUnavailable")
		c := meta.FindStatusCondition(object.Status.Conditions, "Stalled")
		if lasted := c.LastTransitionTime.Sub(since.Time); lasted < deadline {
			t.Errorf("Stalled after %v, want not before %v", lasted, deadline)
		}

		beComplete(t, ns, "a", 2)
		k.waitCondition(t, ns, "a", "Ready", "Available")
		k.waitUnavailableSince(t, ns, "a", 2, false)
		k.wantEvents(t, ns, "Normal Synced", "Warning ReplicasUnavailable", "Normal Synced")
	})
}

// beComplete writes the Deployment's status as kube-controller-manager does after a complete
// rollout with this number of available replicas.
func beComplete(t *testing.T, ns, name string, available int32) {
	t.Helper()
	d := getDeployment(t, ns, name)
	n := *d.Spec.Replicas
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d,
		"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, d.Generation, n, n, available, available)
	if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// waitUnavailableSince waits until the status has this number of available replicas, and says
// since when replicas are unavailable, or does not.
func (k kind) waitUnavailableSince(t *testing.T, ns, name string, available int32, has bool) *samplev1alpha1.Foo {
	t.Helper()
	var object *samplev1alpha1.Foo
	clustertest.WaitUntil(t, fmt.Sprintf("%d replicas are available, and the status has a time: %v", available, has), func(ctx context.Context) (err error) {
		if object, err = k.Get(ctx, ns, name); err != nil {
			return err
		}
		if object.Status.AvailableReplicas != available || (object.Status.UnavailableSince != nil) != has {
			return fmt.Errorf("status %+v", object.Status)
		}
		return nil
	})
	return object
}
