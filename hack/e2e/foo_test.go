// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

func TestFooBecomesRunningPods(t *testing.T) {
	ns := newNamespace(t)
	freeLease(t)
	r := startReplica(t).ready()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", ns, "apply", "-f", root+"/manifests/examples/foo.yaml")
	kubectl(t, "-n", ns, "wait", "foo/example-foo", "--for=condition=Ready", "--timeout=60s")
	wantPods(t, ns, "example-foo", 1)

	for _, replicas := range []int{3, 0, 2} {
		kubectl(t, "-n", ns, "scale", "foo/example-foo", fmt.Sprintf("--replicas=%d", replicas))
		waitReady(t, ns, "example-foo", replicas)
		wantPods(t, ns, "example-foo", replicas)
	}

	// Drift is undone, and what is not declared stays.
	kubectl(t, "-n", ns, "annotate", "deployment/example-foo", "team=blue")
	kubectl(t, "-n", ns, "scale", "deployment/example-foo", "--replicas=5")
	waitReady(t, ns, "example-foo", 2)
	if got := kubectl(t, "-n", ns, "get", "deployment/example-foo", "-o", "jsonpath={.metadata.annotations.team} {.spec.replicas}"); got != "blue 2" {
		t.Errorf("annotation and replicas = %q, want blue 2", got)
	}

	// One Event for each time that it became ready, none for a sync.
	events := kubectl(t, "-n", ns, "get", "events", "--field-selector=involvedObject.kind=Foo", "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`)
	if strings.TrimSpace(events) != "Synced" { // the recorder counts repetitions in one
		t.Errorf("reasons of Events = %q, want Synced alone", events)
	}

	kubectl(t, "-n", ns, "delete", "foo/example-foo", "--wait")
	waitUntil(t, "the garbage collector has taken the Deployment", func(ctx context.Context) error {
		_, err := kube.AppsV1().Deployments(ns).Get(ctx, "example-foo", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	r.stop()
	wantNoDenials(t)
}

func TestRestartWritesNothing(t *testing.T) {
	ns := newNamespace(t)
	freeLease(t)
	first := startReplica(t).ready()
	for i := range 10 {
		createFoo(t, ns, fmt.Sprintf("foo-%d", i), 2)
	}
	for i := range 10 {
		waitReady(t, ns, fmt.Sprintf("foo-%d", i), 2)
	}
	before := writes(t, ns)
	for _, perFoo := range []string{"create deployments", "patch foos/status"} {
		if got := before[perFoo]; got < 10 {
			t.Errorf("%d calls %q for 10 Foos: the audit log does not tell all", got, perFoo)
		}
	}
	if got := before["create deployments"]; got != 10 {
		t.Errorf("%d Deployments were created for 10 Foos", got)
	}

	// Leave the Lease to the next and wait until it has served one more Foo: with
	// one worker it has then been through all that were there.
	holder := waitLeader(t, "")
	next := startReplica(t, "--concurrent-foo-syncs=1").ready()
	first.stop()
	waitLeader(t, holder)
	other := newNamespace(t)
	createFoo(t, other, "barrier", 1)
	waitReady(t, other, "barrier", 1)
	if after := writes(t, ns); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("writes after the restart %v, before %v: want none more", after, before)
	}
	next.stop()
	wantNoDenials(t)
}

// createFoo makes a Foo and its namesake Deployment wanted.
func createFoo(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	_, err := sample.SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// touch changes a Foo in a way that asks for nothing.
func touch(ctx context.Context, ns, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, value)
	_, err := sample.SamplecontrollerV1alpha1().Foos(ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// waitReady waits until the Foo is ready in its present generation, with so many
// replicas.
func waitReady(t *testing.T, ns, name string, replicas int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("Foo %s is ready with %d replicas", name, replicas), func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := foo.Status
		if !meta.IsStatusConditionTrue(s.Conditions, "Ready") || s.ObservedGeneration != foo.Generation || int(s.AvailableReplicas) != replicas || int(s.Replicas) != replicas {
			return fmt.Errorf("generation %d, status %+v", foo.Generation, s)
		}
		return nil
	})
}

// wantPods compares the Pods of a Foo that run on a Node.
func wantPods(t *testing.T, ns, name string, want int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%d Pods of Foo %s run", want, name), func(ctx context.Context) error {
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=nginx,controller=" + name})
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
