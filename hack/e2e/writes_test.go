// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// TestWritesFollowChanges makes 100 Foos and holds what foo-controller writes
// against what happens to their Deployments; then nothing happens.
func TestWritesFollowChanges(t *testing.T) {
	const (
		count    = 100
		replicas = 2
		rest     = 60 * time.Second
	)
	ns := newNamespace(t)
	freeLease(t)
	r := startReplica(t, "--controllers=foo-controller").ready()
	holder := waitLeader(t, "")
	deployments := record[*appsv1.Deployment](t, kube.AppsV1().Deployments(ns).Watch)
	for i := range count {
		createFoo(t, ns, fmt.Sprintf("foo-%d", i), replicas)
	}
	for i := range count {
		waitReady(t, ns, fmt.Sprintf("foo-%d", i), replicas)
	}
	wantSyncedOnce(t, ns, count)
	deployments.waitFor(t, "all Deployments are told to be available", func(deployments []*appsv1.Deployment) error {
		for _, d := range deployments {
			if d.Status.AvailableReplicas != replicas {
				return fmt.Errorf("%s is not", d.Name)
			}
		}
		return nil
	})

	changes := map[string]int{}
	last := map[string]string{}
	for _, change := range deployments.told() {
		d := change.object
		if says := statusOf(t, d); says != last[d.Name] {
			changes[d.Name]++
			last[d.Name] = says
		}
	}
	statusWrites, allWrites, allChanges := map[string]int{}, 0, 0
	for _, event := range daemonEvents(t, ns) {
		if event.ObjectRef.Subresource == "status" {
			statusWrites[event.ObjectRef.Name]++
		}
	}
	for name, n := range changes {
		allChanges += n
		allWrites += statusWrites[name]
		if got := statusWrites[name]; got > n || got < 2 {
			t.Errorf("the status of %s was written %d times for %d changes of its Deployment", name, got, n)
		}
	}
	t.Logf("%d Foos: %d status writes for %d changes of Deployments, %d changes in all", count, allWrites, allChanges, len(deployments.told()))
	before := requests(t, ns)
	if diff := cmp.Diff(map[string]int{"create deployments": count, "patch foos/status": allWrites, "create events": count}, before); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}

	writes := len(daemonWrites(t))
	time.Sleep(rest) // in which nothing is to be written, anywhere
	for _, event := range daemonWrites(t)[writes:] {
		t.Errorf("%s %s in %s while nothing happened", cluster.Call(event), event.ObjectRef.Name, event.ObjectRef.Namespace)
	}

	// With one worker, a Foo that is made last is served after all others.
	r.stop()
	r = startReplica(t, "--controllers=foo-controller", "--concurrent-foo-syncs=1").ready()
	waitLeader(t, holder)
	other := newNamespace(t)
	createFoo(t, other, "barrier", 1)
	waitReady(t, other, "barrier", 1)
	if diff := cmp.Diff(before, requests(t, ns)); diff != "" {
		t.Errorf("a restart wrote (-before +after):\n%s", diff)
	}
	r.stop()
	wantNoDenials(t)
}

// statusOf spells out what the status of the Foo that owns the Deployment is to say
// when the Deployment is as given.
func statusOf(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	owner := metav1.GetControllerOf(d)
	if owner == nil {
		t.Fatalf("Deployment %s has no owner", d.Name)
	}
	parent := workload.Parent{
		Object:         &metav1.ObjectMeta{Name: owner.Name, Namespace: d.Namespace, UID: owner.UID},
		Kind:           samplev1alpha1.SchemeGroupVersion.WithKind(owner.Kind),
		DeploymentName: d.Name,
	}
	return fmt.Sprint(workload.NewStatus(parent, workload.State{Deployment: d}, nil, metav1.Time{}))
}

// wantSyncedOnce waits until it was told of each of so many Foos that it became
// ready, once and nothing else.
func wantSyncedOnce(t *testing.T, ns string, count int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("there are %d Events", count), func(ctx context.Context) error {
		events, err := kube.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Foo"})
		if err != nil {
			return err
		}
		of := map[string]bool{}
		for _, event := range events.Items {
			if event.Reason != "Synced" || event.Type != corev1.EventTypeNormal || event.Count != 1 || of[event.InvolvedObject.Name] {
				t.Fatalf("Event %s %s of %s, %d times: want Synced once", event.Type, event.Reason, event.InvolvedObject.Name, event.Count)
			}
			of[event.InvolvedObject.Name] = true
		}
		if len(of) != count {
			return fmt.Errorf("there are %d", len(of))
		}
		return nil
	})
}

// daemonWrites returns what the daemon has written so far, in whatever namespace.
// Left out is what it writes to lead, and what it asks about its clients.
func daemonWrites(t *testing.T) []auditv1.Event {
	t.Helper()
	events, err := testCluster.AuditEvents(func(event auditv1.Event) bool {
		if !strings.HasPrefix(event.UserAgent, daemonName+"/") || event.ObjectRef == nil {
			return false
		}
		switch event.Verb {
		case "get", "list", "watch":
			return false
		}
		switch event.ObjectRef.Resource {
		case "leases", "tokenreviews", "subjectaccessreviews":
			return false
		case "events":
			return event.ObjectRef.Namespace != daemonName // those of the election
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}
