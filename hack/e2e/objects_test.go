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
)

// fooManifest returns a YAML document with a Foo as both sample-controller and we
// know it; with 0 replicas they are left out.
func fooManifest(name, deployment string, replicas int) string {
	manifest := fmt.Sprintf("---\napiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata:\n  name: %s\nspec:\n  deploymentName: %s\n", name, deployment)
	if replicas > 0 {
		manifest += fmt.Sprintf("  replicas: %d\n", replicas)
	}
	return manifest
}

func applyManifest(t *testing.T, ns, manifest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", ns, "apply", "-f", path)
}

// patchFoo applies a JSON merge patch.
func patchFoo(t *testing.T, ns, name, patch string) {
	t.Helper()
	_, err := sample.SamplecontrollerV1alpha1().Foos(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// restoreCRDs installs our CRDs again at the end of a test that changes them.
func restoreCRDs(t *testing.T) {
	t.Cleanup(func() {
		if err := testCluster.Install(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// waitStalled waits until the Foo is Stalled in its present generation.
func waitStalled(t *testing.T, ns, name string) {
	t.Helper()
	waitUntil(t, "Foo "+name+" is stalled", func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (!meta.IsStatusConditionTrue(foo.Status.Conditions, "Stalled") || foo.Status.ObservedGeneration != foo.Generation) {
			err = fmt.Errorf("generation %d, status %+v", foo.Generation, foo.Status)
		}
		return err
	})
}

// waitIdle waits until the replica that leads, started with one worker, has been
// through all that there was to do: it has served one more Foo.
func waitIdle(t *testing.T) {
	t.Helper()
	ns := newNamespace(t)
	createFoo(t, ns, "barrier", 1)
	waitReady(t, ns, "barrier", 1)
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

// wantWrites compares all that foo-controller has written in a namespace, by call.
func wantWrites(t *testing.T, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, writes(t, ns)); diff != "" {
		t.Errorf("calls of foo-controller (-want +got):\n%s", diff)
	}
}
