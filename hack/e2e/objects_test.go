// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func applyManifest(t *testing.T, ns, manifest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", ns, "apply", "-f", path)
}

// restoreCRDs installs our CRDs again at the end of a test that changes them.
func restoreCRDs(t *testing.T) {
	// For some seconds after a kind has come back, admission cannot tell who may block the
	// deletion of its objects, and refuses. That may be after the test.
	declareDenials(func(event auditv1.Event) bool {
		return strings.Contains(event.ResponseStatus.Message, "cannot find RESTMapping")
	})
	t.Cleanup(func() {
		if err := testCluster.Install(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// waitReady waits until an object is ready in its present generation, with so many
// replicas.
func (k kind) waitReady(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%s %s is ready with %d replicas", k.Kind, name, replicas), func(ctx context.Context) error {
		object, err := k.get(ctx, ns, name)
		if err != nil {
			return err
		}
		s := object.Status
		if !meta.IsStatusConditionTrue(s.Conditions, "Ready") || s.ObservedGeneration != object.Generation || int(s.AvailableReplicas) != replicas || int(s.Replicas) != replicas {
			return fmt.Errorf("generation %d, status %+v", object.Generation, s)
		}
		return nil
	})
}

// wantPods compares the Pods of an object that run on a Node.
func (k kind) wantPods(t *testing.T, ns, name string, want int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%d Pods of %s %s run", want, k.Kind, name), func(ctx context.Context) error {
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + k.app + ",controller=" + name})
		if err != nil {
			return err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == "Running" && strings.HasPrefix(pod.Spec.NodeName, "node-") && pod.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d Pods run", running, len(pods.Items))
		}
		return nil
	})
}

// waitStalled waits until an object is Stalled in its present generation.
func (k kind) waitStalled(t *testing.T, ns, name string) {
	t.Helper()
	waitUntil(t, k.Kind+" "+name+" is stalled", func(ctx context.Context) error {
		object, err := k.get(ctx, ns, name)
		if err == nil && (!meta.IsStatusConditionTrue(object.Status.Conditions, "Stalled") || object.Status.ObservedGeneration != object.Generation) {
			err = fmt.Errorf("generation %d, status %+v", object.Generation, object.Status)
		}
		return err
	})
}

// waitIdle waits until the replica that leads, started with one worker for the kind,
// has been through all that there was to do: it has served one more object.
func (k kind) waitIdle(t *testing.T) {
	t.Helper()
	ns := newNamespace(t)
	k.create(t, ns, "barrier", 1)
	k.waitReady(t, ns, "barrier", 1)
}

// waitDeployment waits until a Deployment exists.
func waitDeployment(t *testing.T, ns, name string) {
	t.Helper()
	waitUntil(t, "Deployment "+name+" exists", func(ctx context.Context) error {
		_, err := kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// snapshot is what runs in a namespace, without what changes by itself.
type snapshot struct {
	Deployments map[string]appsv1.Deployment
	ReplicaSets map[string]types.UID
	Pods        map[string]types.UID
}

func running(t *testing.T, ns string) snapshot {
	t.Helper()
	s := snapshot{map[string]appsv1.Deployment{}, map[string]types.UID{}, map[string]types.UID{}}
	deployments, err := kube.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		d.ResourceVersion, d.ManagedFields, d.Status = "", nil, appsv1.DeploymentStatus{}
		s.Deployments[d.Name] = d
	}
	replicaSets, err := kube.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rs := range replicaSets.Items {
		s.ReplicaSets[rs.Name] = rs.UID
	}
	pods, err := kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		s.Pods[pod.Name] = pod.UID
	}
	return s
}

func deployment(t *testing.T, ns, name string) *appsv1.Deployment {
	t.Helper()
	d, err := kube.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// editDeployment runs a kubectl command, given without spaces inside its arguments,
// with deployment/<name> in the place of DEPLOYMENT.
func editDeployment(t *testing.T, ns, name, command string) {
	t.Helper()
	kubectl(t, append([]string{"-n", ns}, strings.Fields(strings.ReplaceAll(command, "DEPLOYMENT", "deployment/"+name))...)...)
}

// managedBy returns the fields of an object or of its subresource that a field
// manager has, empty if none.
func managedBy(entries []metav1.ManagedFieldsEntry, manager, subresource string) string {
	for _, entry := range entries {
		if entry.Manager == manager && entry.Subresource == subresource {
			return string(entry.FieldsV1.Raw)
		}
	}
	return ""
}

// wantWrites compares all that the controller has written in a namespace, by call.
func (k kind) wantWrites(t *testing.T, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, k.writes(t, ns)); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", k.controller, diff)
	}
}
