// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestRenameLeavesFormerDeployment renames an object whose Deployment others have changed, and
// runs the command that its status gives.
func TestRenameLeavesFormerDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		ns := newNamespace(t)
		server := startDaemon(t)
		object := k.New("a", 1)
		object.Spec.Replicas = nil
		k.Store(t, ns, object)
		k.waitReplicas(t, ns, "a", 1)
		created := getDeployment(t, ns, "a")
		kubectl(t, "-n", ns, "patch", "deployment", "a", "-p", `{"metadata":{"labels":{"team":"blue"}},"spec":{"replicas":3,
			"strategy":{"type":"Recreate","rollingUpdate":null},"template":{"spec":{"containers":[{"name":"sidecar","image":"envoy"}]}}}}`)
		beReady(t, ns, "a")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		former := getDeployment(t, ns, "a")

		k.Patch(t, ns, "a", `{"spec":{"deploymentName":"b"}}`)
		k.waitReplicas(t, ns, "b", 1)
		present := getDeployment(t, ns, "b")
		if diff := cmp.Diff(created.Spec, present.Spec); diff != "" || len(present.Labels) > 0 {
			t.Errorf("labels %v and spec of the new Deployment (-as created for a new object +got):\n%s", present.Labels, diff)
		}
		beReady(t, ns, "b")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		command := "kubectl -n " + ns + " delete deployment a"
		left := `the former Deployment "a" still runs; not carried over from "a": 3 replicas, ` +
			"whatever else the spec does not declare; once you do not need it, run " + command
		k.waitReadyMessage(t, ns, "a", left, true)

		// Neither a change of the object nor a new process writes it, or names it in another Event.
		k.Patch(t, ns, "a", `{"spec":{"replicas":4,"image":"nginx:1.29"}}`)
		k.waitReplicas(t, ns, "b", 4)
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		startDaemon(t)
		k.Patch(t, ns, "a", `{"spec":{"replicas":5}}`)
		k.waitReplicas(t, ns, "b", 5)
		beReady(t, ns, "b")
		k.waitCondition(t, ns, "a", "Ready", "Available")
		if diff := cmp.Diff(former, getDeployment(t, ns, "a")); diff != "" {
			t.Errorf("the former Deployment was changed (-before +after):\n%s", diff)
		}
		k.wantOneEvent(t, ns, "FormerDeploymentLeft", left)

		kubectl(t, strings.Fields(command)[1:]...)
		k.waitReadyMessage(t, ns, "a", "former", false)
		k.waitCondition(t, ns, "a", "Ready", "Available")
	})
}

// TestFormerDeploymentIsKept makes the Deployment of a renamed object impossible for a while.
// Another operator has a Deployment that the object controls.
func TestFormerDeploymentIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		prevent func(t *testing.T, ns string) (lift func())
		reason  string
	}{
		"quota":      {exhaustQuota, "WriteDenied"},
		"name taken": {takeName, "DeploymentConflict"},
	} {
		t.Run(name, func(t *testing.T) {
			overKinds(t, func(t *testing.T, k kind) {
				ns := newNamespace(t)
				startDaemon(t)
				object := k.Create(t, ns, "a", 2)
				k.waitReplicas(t, ns, "a", 2)
				beReady(t, ns, "a")
				k.waitCondition(t, ns, "a", "Ready", "Available")
				exporter := createDeployment(t, ns, "exporter", map[string]string{"app": "exporter"}, k.controlledBy(object))
				lift := test.prevent(t, ns)

				k.Patch(t, ns, "a", `{"spec":{"deploymentName":"b"}}`)
				k.waitCondition(t, ns, "a", "Stalled", test.reason)
				k.waitScale(t, ns, "a", 2)
				k.waitReadyMessage(t, ns, "a", fmt.Sprintf(
					`; until Deployment "b" of %s "a" exists, the former Deployment "a" is kept, with 2 of 2 replicas available`, k.Kind), true)

				// As an autoscaler does.
				kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=4")
				k.waitReplicas(t, ns, "a", 4)
				beReady(t, ns, "a")
				k.waitScale(t, ns, "a", 4)
				former := getDeployment(t, ns, "a")

				lift()
				k.waitReplicas(t, ns, "b", 4)
				kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=5")
				k.waitReplicas(t, ns, "b", 5)
				beReady(t, ns, "b")
				k.waitCondition(t, ns, "a", "Ready", "Available")
				k.waitReadyMessage(t, ns, "a", `the former Deployment "a" still runs`, true)
				for _, want := range []*appsv1.Deployment{former, exporter} {
					if diff := cmp.Diff(want, getDeployment(t, ns, want.Name)); diff != "" {
						t.Errorf("Deployment %s was changed (-before +after):\n%s", want.Name, diff)
					}
				}
				inNamespace{k, ns}.wantDeploymentWrites(t, map[string]int{"create a": 1, "patch a": 1, "create b": 1, "patch b": 1})
				if status := fmt.Sprint(k.raw(t, ns, "a")["status"]); strings.Contains(status, exporter.Name) {
					t.Errorf("status %s, want one that does not name the Deployment of another operator", status)
				}
			})
		})
	}
}

// takeName creates a Deployment "b" that belongs to nobody. Lifting that deletes it.
func takeName(t *testing.T, ns string) (lift func()) {
	t.Helper()
	before := createDeployment(t, ns, "b", map[string]string{"app": "foreign"}, nil)
	return func() {
		t.Helper()
		if diff := cmp.Diff(before, getDeployment(t, ns, "b")); diff != "" {
			t.Errorf("the Deployment of nobody was changed (-before +after):\n%s", diff)
		}
		kubectl(t, "-n", ns, "delete", "deployment", "b")
	}
}

// waitReadyMessage waits until the message of the condition Ready has the text, or lacks it.
func (k kind) waitReadyMessage(t *testing.T, ns, name, text string, has bool) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("%s %s has the message %q: %v", k.Kind, name, text, has), func(ctx context.Context) error {
		object, err := k.Get(ctx, ns, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(object.Status.Conditions, "Ready")
		if c == nil || strings.Contains(c.Message, text) != has {
			return fmt.Errorf("Ready = %+v", c)
		}
		return nil
	})
}

// waitScale waits until the subresource that autoscalers read has this number of replicas.
func (k kind) waitScale(t *testing.T, ns, name string, replicas int64) {
	t.Helper()
	want := map[string]any{"replicas": replicas, "selector": "app=" + k.App + ",controller=" + name}
	clustertest.WaitUntil(t, fmt.Sprintf("the scale of %s %s is %d", k.Kind, name, replicas), func(ctx context.Context) error {
		scale, err := k.In(ns).Get(ctx, name, metav1.GetOptions{}, "scale")
		if err != nil {
			return err
		}
		got, _, err := unstructured.NestedMap(scale.Object, "status")
		if diff := cmp.Diff(want, got); diff != "" {
			err = fmt.Errorf("status of the scale (-want +got):\n%s", diff)
		}
		return err
	})
}

// wantOneEvent checks that the object has one Event for the reason, which happened once.
func (k kind) wantOneEvent(t *testing.T, ns, reason, message string) {
	t.Helper()
	selector := "involvedObject.kind=" + k.Kind + ",reason=" + reason
	events, err := shared.Kube().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	if len(events.Items) != 1 || events.Items[0].Count != 1 || events.Items[0].Message != message || events.Items[0].Type != "Warning" {
		t.Errorf("Events for %s: %+v, want one with the message %q", reason, events.Items, message)
	}
}
