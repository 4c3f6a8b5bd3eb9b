// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func placeForeign(t *testing.T, _ framework.Kind, ns string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "create", "deployment", "web", "--image=nginx")
	framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=300s")
}

// createKeeper creates a ConfigMap and returns it as an owner.
func createKeeper(t *testing.T, ns string) metav1.OwnerReference {
	t.Helper()
	keeper, err := framework.Kube().CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keeper"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: keeper.Name, UID: keeper.UID}
}

func placeOfFirst(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	k.CreateNaming(t, ns, "first", "web")
	k.WaitReady(t, ns, "first", 1)
}

func placeOwn(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	k.CreateNaming(t, ns, "a", "web")
	k.WaitReady(t, ns, "a", 1)
}

// placeOfOtherKind places the Deployment of an object of the other kind with the same name.
func placeOfOtherKind(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	placeOwn(t, k.Other(), ns)
}

// placeDisowned places the object's own Deployment, with another, non-controller owner instead
// of the object.
func placeDisowned(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	placeOwn(t, k, ns)
	keeper := createKeeper(t, ns)
	framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "--type=merge",
		fmt.Sprintf(`-p={"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`, keeper.APIVersion, keeper.Kind, keeper.Name, keeper.UID))
}

// placeOfDeadNamesake places the Deployment of an earlier object "a". The garbage collector
// keeps it, because the API version of its owner does not exist.
func placeOfDeadNamesake(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	placeOwned(t, k, ns, metav1.OwnerReference{APIVersion: k.Group + "/v1", Kind: k.Kind, Name: "a", UID: "00000000-0000-4000-8000-000000000000"})
	framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=300s")
}

// placeOwned places a Deployment with a controller and no replicas.
func placeOwned(t *testing.T, k framework.Kind, ns string, owner metav1.OwnerReference) {
	t.Helper()
	owner.Controller = ptr.To(true)
	labels := map[string]string{"app": k.App, "controller": "a"}
	_, err := framework.Kube().AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// inDeletion places a Deployment and deletes it. A finalizer keeps it.
func inDeletion(place func(t *testing.T, k framework.Kind, ns string)) func(t *testing.T, k framework.Kind, ns string) {
	return func(t *testing.T, k framework.Kind, ns string) {
		t.Helper()
		place(t, k, ns)
		framework.Kubectl(t, "-n", ns, "patch", "deployment", "web", "--type=merge", `-p={"metadata":{"finalizers":["example.com/hold"]}}`)
		framework.Kubectl(t, "-n", ns, "delete", "deployment", "web", "--wait=false")
		waitHeld(t, ns)
	}
}

func deleteWeb(t *testing.T, _ framework.Kind, ns string) {
	t.Helper()
	framework.Kubectl(t, "-n", ns, "delete", "deployment", "web")
}

// waitHeld waits until the Deployment is in deletion and its controller has finished updating
// its status.
func waitHeld(t *testing.T, ns string) {
	t.Helper()
	last, since := "", time.Now()
	clustertest.WaitUntil(t, "the Deployment is in deletion and unchanged", func(ctx context.Context) error {
		d, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.ResourceVersion != last {
			last, since = d.ResourceVersion, time.Now()
		}
		if d.DeletionTimestamp == nil || d.Status.ObservedGeneration != d.Generation || time.Since(since) < 2*time.Second {
			return fmt.Errorf("deleted at %v, unchanged since %v, generation %d, status %+v", d.DeletionTimestamp, since, d.Generation, d.Status)
		}
		return nil
	})
}

// followAdvice runs the command in the object's message.
func followAdvice(t *testing.T, k framework.Kind, ns, name string) {
	t.Helper()
	runInShell(t, advice(t, k, ns, name))
}

// advice returns the command in the object's message.
func advice(t *testing.T, k framework.Kind, ns, name string) string {
	t.Helper()
	message, err := readyMessage(t.Context(), k, ns, name)
	_, command, found := strings.Cut(message, " kubectl ")
	if err != nil || !found {
		t.Fatalf("no advice in %q, %v", message, err)
	}
	command, _, _ = strings.Cut(command, "; ")
	return "kubectl " + command
}

// readyMessage returns the message of the object's condition Ready.
func readyMessage(ctx context.Context, k framework.Kind, ns, name string) (string, error) {
	object, err := k.Get(ctx, ns, name)
	if err != nil {
		return "", err
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, "Ready")
	if ready == nil {
		return "", errors.New("it has no condition Ready")
	}
	return ready.Message, nil
}

// runInShell runs a command like a user who pastes it into a shell.
func runInShell(t *testing.T, command string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(),
		"PATH="+filepath.Dir(framework.Cluster().KubectlPath)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+framework.Cluster().Kubeconfig, "KUBERC=off")
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
}

// adopt makes the object the owner of the Deployment, as its message advises. Other owners stay.
func adopt(t *testing.T, k framework.Kind, ns string) {
	t.Helper()
	followAdvice(t, k, ns, "a")
	var owners []string
	for _, owner := range framework.Deployment(t, ns, "web").OwnerReferences {
		owners = append(owners, owner.Kind)
	}
	if slices.Sort(owners); !slices.Equal(owners, []string{"ConfigMap", k.Kind}) {
		t.Errorf("the owners are %v, want the previous one and the %s", owners, k.Kind)
	}
}

// inFull returns the complete Deployment from the API server.
func inFull(t *testing.T, ns, name string) string {
	t.Helper()
	return framework.Kubectl(t, "-n", ns, "get", "deployment", name, "--show-managed-fields", "-o", "json")
}

// deploymentCalls counts the controller's calls for Deployments in a namespace, including
// rejected ones.
func deploymentCalls(t *testing.T, k framework.Kind, ns string) map[string]int {
	t.Helper()
	calls := k.Writes(t, ns)
	for call := range calls {
		if !strings.HasSuffix(call, " deployments") {
			delete(calls, call)
		}
	}
	return calls
}

// wantOwned checks that the object owns the Deployment.
func wantOwned(t *testing.T, k framework.Kind, ns, owner, name string) {
	t.Helper()
	object := k.MustGet(t, ns, owner)
	if d := framework.Deployment(t, ns, name); !metav1.IsControlledBy(d, object) {
		t.Errorf("Deployment %s has owners %+v, want %s %s of UID %s", name, d.OwnerReferences, k.Kind, owner, object.UID)
	}
}

// wantWarning waits until there is exactly one Warning about an object, with the given reason,
// or checks that there is none.
func wantWarning(t *testing.T, k framework.Kind, ns, name, reason string) {
	t.Helper()
	want := map[string]int32{}
	if reason != "" {
		want[reason] = 1
	}
	clustertest.WaitUntil(t, "the Warnings are recorded", func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{
			FieldSelector: "type=Warning,involvedObject.kind=" + k.Kind + ",involvedObject.name=" + name,
		})
		if err != nil {
			return err
		}
		got := map[string]int32{}
		for _, event := range events.Items {
			got[event.Reason] += event.Count
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
