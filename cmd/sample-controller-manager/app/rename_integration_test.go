// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestRenameKeepsPodTemplate renames an object whose Deployment has undeclared fields that
// others set. A finalizer holds the former Deployment.
func TestRenameKeepsPodTemplate(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		object := k.New("a", 1)
		object.Spec.Replicas = nil
		k.Store(t, ns, object)
		k.waitReplicas(t, ns, "a", 1)
		kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"metadata":{"labels":{"team":"blue"},"finalizers":["example.com/hold"]},
			"spec":{"replicas":3,"minReadySeconds":1,"progressDeadlineSeconds":77,"strategy":{"type":"Recreate","rollingUpdate":null},
			"template":{"metadata":{"labels":{"tier":"front"},"annotations":{"example.com/note":"x"}},"spec":{"terminationGracePeriodSeconds":7,"containers":[
			{"name":"nginx","image":"registry.example.com/app:v7","resources":{"limits":{"cpu":"1"}},"env":[{"name":"A","value":"b"}]},
			{"name":"sidecar","image":"envoy"}]}}}}`)
		before := getDeployment(t, ns, "a")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")

		if err := k.TryPatch(t.Context(), ns, "a", `{"spec":{"deploymentName":"b"}}`); err != nil {
			t.Fatal(err)
		}
		k.waitReplicas(t, ns, "b", 3)
		now := getDeployment(t, ns, "b")
		if diff := cmp.Diff(before.Spec, now.Spec); diff != "" {
			t.Errorf("unexpected spec of the new Deployment (-former +new):\n%s", diff)
		}
		if diff := cmp.Diff(before.Labels, now.Labels); diff != "" || len(now.Finalizers) > 0 {
			t.Errorf("finalizers %q and labels of the new Deployment (-former +new):\n%s", now.Finalizers, diff)
		}

		// It is not Ready before the former Deployment is gone.
		beReady(t, ns, "b")
		k.waitCondition(t, ns, "a", "Reconciling", "WaitingForDeletion")
		kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"metadata":{"finalizers":null}}`)
		k.waitCondition(t, ns, "a", "Ready", "Available")
		clustertest.WaitUntil(t, "the former Deployment is gone", func(ctx context.Context) error {
			_, err := shared.Kube().AppsV1().Deployments(ns).Get(ctx, "a", metav1.GetOptions{})
			if err == nil {
				return errors.New("it still exists")
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	})
}
