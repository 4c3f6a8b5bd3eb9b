// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestPausedDeploymentIsReported pauses a Deployment and changes its Pod template, so that
// kube-controller-manager does not roll it out.
func TestPausedDeploymentIsReported(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.Create(t, ns, "a", 1)
		k.waitReplicas(t, ns, "a", 1)
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")

		kubectl(t, "-n", ns, "rollout", "pause", "deployment", "a")
		kubectl(t, "-n", ns, "set", "resources", "deployment", "a", "--limits=cpu=1")
		status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"updatedReplicas":0}}`, getDeployment(t, ns, "a").Generation)
		if _, err := shared.Kube().AppsV1().Deployments(ns).Patch(t.Context(), "a", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		object := k.waitCondition(t, ns, "a", "Stalled", "DeploymentPaused")
		command := fmt.Sprintf("kubectl -n %s rollout resume deployment a", ns)
		if c := meta.FindStatusCondition(object.Status.Conditions, "Ready"); !strings.Contains(c.Message, command) {
			t.Errorf("Ready = %+v, want a message with %q", c, command)
		}

		kubectl(t, strings.Fields(command)[1:]...)
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
	})
}

// TestRenamedContainerIsNotAddedAgain renames the container that the object's image is for.
func TestRenamedContainerIsNotAddedAgain(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		startDaemon(t)
		k.Create(t, ns, "a", 1)
		k.waitReplicas(t, ns, "a", 1)
		const name = "/spec/template/spec/containers/0/name"
		kubectl(t, "-n", ns, "patch", "deployment", "a", "--type=json", fmt.Sprintf(`--patch=[{"op":"replace","path":%q,"value":"web"}]`, name))
		k.Patch(t, ns, "a", `{"spec":{"image":"nginx:1.29","replicas":2}}`)
		object := k.waitCondition(t, ns, "a", "Stalled", "ContainerMissing")
		if c := meta.FindStatusCondition(object.Status.Conditions, "Ready"); !strings.Contains(c.Message, `no container "nginx"`) {
			t.Errorf("Ready = %+v, want a message that names the container", c)
		}
		k.waitReplicas(t, ns, "a", 2) // still corrected
		if containers := getDeployment(t, ns, "a").Spec.Template.Spec.Containers; len(containers) != 1 {
			t.Errorf("the Deployment has %d containers, want 1: %+v", len(containers), containers)
		}

		kubectl(t, "-n", ns, "patch", "deployment", "a", "--type=json", fmt.Sprintf(`--patch=[{"op":"replace","path":%q,"value":"nginx"}]`, name))
		k.waitCondition(t, ns, "a", "Reconciling", "Progressing")
		if got := getDeployment(t, ns, "a").Spec.Template.Spec.Containers[0].Image; got != "nginx:1.29" {
			t.Errorf("image %q, want that of the object", got)
		}
	})
}

// TestDeploymentWithOtherSelectorHasNoPodSummary gives an object a Deployment whose Pods
// lack the watched label.
func TestDeploymentWithOtherSelectorHasNoPodSummary(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		object := k.Create(t, ns, "a", 1)
		labels := map[string]string{"app": "else"}
		deployment := &appsv1.Deployment{
			ObjectMeta: owned("a", nil, metav1.NewControllerRef(object, k.GroupVersionKind)),
			Spec:       appsv1.DeploymentSpec{Replicas: object.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels)},
		}
		if _, err := shared.Kube().AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		rs := createReplicaSet(t, ns, "a", labels, controlledBy(getDeployment(t, ns, "a")))
		createPod(t, ns, "a", "node-1", labels, controlledBy(rs))
		beReady(t, ns, "a")

		startDaemon(t)
		k.waitCondition(t, ns, "a", "Ready", "Available")
		k.createServed(t, ns, "later")
		k.waitPods(t, ns, "later", "none") // the aggregator has synced "a", too
		clustertest.WaitUntil(t, "the status explains the missing summary", func(ctx context.Context) error {
			object, err := k.Get(ctx, ns, "a")
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(object.Status.Conditions, "Ready")
			if object.Status.Pods != nil || c == nil || !strings.Contains(c.Message, `its Pods are not watched, because its selector lacks the label "controller"`) {
				return fmt.Errorf("pods %+v, conditions %+v", object.Status.Pods, object.Status.Conditions)
			}
			return nil
		})

		// An apply alone does not remove what another manager has set, too.
		k.applyStatus(t, ns, "a", "restore-tool", map[string]any{"pods": map[string]any{"summary": "restored", "total": int64(3)}})
		clustertest.WaitUntil(t, "a restored summary is removed", func(ctx context.Context) error {
			object, err := k.Get(ctx, ns, "a")
			if err == nil && object.Status.Pods != nil {
				err = fmt.Errorf("pods %+v", object.Status.Pods)
			}
			return err
		})
	})
}
