// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// patient keeps a busy machine from timing out writes: the API server would still make them.
var patient = []string{"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--write-timeout=20s"}

// TestWritesFollowChanges creates Foos and Icecreams and compares what the daemon writes
// with what happens to their Deployments and Pods; then nothing happens.
func TestWritesFollowChanges(t *testing.T) {
	rest := time.Duration(framework.Count(60, 10)) * time.Second
	framework.FreeLease(t)
	r := framework.StartReplica(t, patient...).Ready()
	holder := framework.WaitLeader(t, "")
	namespaces, before := map[framework.Kind]string{}, map[framework.Kind]map[string]int{}
	for _, k := range framework.Kinds {
		namespaces[k] = framework.NewNamespace(t)
	}
	for k, ns := range namespaces {
		before[k] = writesFollowChanges(t, k, ns)
	}

	writes := len(daemonWrites(t))
	time.Sleep(rest) // in which nothing is to be written, anywhere
	for _, event := range daemonWrites(t)[writes:] {
		t.Errorf("%s %s in %s while nothing happened", cluster.Call(event), event.ObjectRef.Name, event.ObjectRef.Namespace)
	}

	// With one worker, an object that is made last is served after all others.
	r.Stop()
	r = framework.StartReplica(t, slices.Concat(patient, framework.OneWorker, []string{"--concurrent-status-aggregator-syncs=1"})...).Ready()
	framework.WaitLeader(t, holder)
	for k, ns := range namespaces {
		other := framework.NewNamespace(t)
		k.Create(t, other, "barrier", 1)
		k.WaitReady(t, other, "barrier", 1)
		k.WaitPodsReported(t, other, "barrier", 1)
		if diff := cmp.Diff(before[k], framework.Requests(t, ns)); diff != "" {
			t.Errorf("a restart wrote for %ss (-before +after):\n%s", k.Kind, diff)
		}
	}
	r.Stop()
	framework.WantNoDenials(t)
}

// writesFollowChanges makes objects of one kind, waits until all is said about them,
// and returns what the daemon has asked for.
func writesFollowChanges(t *testing.T, k framework.Kind, ns string) map[string]int {
	t.Helper()
	const replicas = 2
	count := framework.Count(100, 20)
	objects := framework.Record[*samplev1alpha1.Foo](t, k.Watch(ns))
	deployments := framework.Record[*appsv1.Deployment](t, framework.Kube().AppsV1().Deployments(ns).Watch)
	for i := range count {
		k.Create(t, ns, fmt.Sprintf("x-%d", i), replicas)
	}
	for i := range count {
		k.WaitReady(t, ns, fmt.Sprintf("x-%d", i), replicas)
		k.WaitPodsReported(t, ns, fmt.Sprintf("x-%d", i), replicas)
	}
	events := waitEvents(t, k, ns, count, replicas)
	deployments.WaitFor(t, "all Deployments are told to be available", func(deployments []*appsv1.Deployment) error {
		for _, d := range deployments {
			if d.Status.AvailableReplicas != replicas {
				return fmt.Errorf("%s is not", d.Name)
			}
		}
		return nil
	})

	allStatusWrites := wantStatusWrites(t, k, ns, deployments, replicas)
	objects.WaitFor(t, "each write of a status is told to have changed it", func([]*samplev1alpha1.Foo) error {
		if got := len(objects.Changes()) - count; got != allStatusWrites {
			return fmt.Errorf("%d writes, %d changes", allStatusWrites, got)
		}
		return nil
	})

	all := framework.Requests(t, ns)
	want := map[string]int{"create deployments": count, "patch " + k.Resource + "/status": allStatusWrites, "create events": events}
	// Before its first writes a new leader asks whether its cache is late.
	looks := "list " + k.Resource
	if n := all[looks]; n > 0 && n <= 10 {
		want[looks] = n
	}
	// Two controllers write each status, each from what it has seen of the other.
	refused := "patch " + k.Resource + "/status (409)"
	if n := all[refused]; n > 0 && 20*n < allStatusWrites {
		want[refused] = n
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
	return all
}

// wantStatusWrites checks that the controller wrote the status of each object only when it
// had changed, and returns the number of status writes of the whole daemon.
func wantStatusWrites(t *testing.T, k framework.Kind, ns string, deployments *framework.History[*appsv1.Deployment], replicas int) (allStatusWrites int) {
	t.Helper()
	changes := map[string]int{}
	last := map[string]string{}
	for _, change := range deployments.Changes() {
		d := change.Object
		if says := statusOf(t, d); says != last[d.Name] {
			changes[d.Name]++
			last[d.Name] = says
		}
	}
	statusWrites, ownStatusWrites, allChanges := map[string]int{}, 0, 0
	own := cluster.ByUserAgent(k.Controller)
	for _, event := range framework.DaemonEvents(t, ns) {
		if event.ObjectRef.Subresource != "status" || event.ResponseStatus.Code != http.StatusOK {
			continue
		}
		allStatusWrites++
		if own(event) {
			ownStatusWrites++
			statusWrites[event.ObjectRef.Name]++
		}
	}
	for name, n := range changes {
		allChanges += n
		if k == framework.Icecreams {
			n += replicas // each Pod may be placed at a time of its own
		}
		if got := statusWrites[name]; got > n || got < 1 {
			t.Errorf("%s wrote the status of %s %d times for %d changes", k.Controller, name, got, n)
		}
	}
	t.Logf("%ss: %d status writes by %s for %d changes of Deployments, %d by %s; %d changes of Deployments in all",
		k.Kind, ownStatusWrites, k.Controller, allChanges, allStatusWrites-ownStatusWrites, framework.Aggregator, len(deployments.Changes()))
	return allStatusWrites
}

// statusOf spells out what the status of the object that owns the Deployment is to say
// when the Deployment is as given.
func statusOf(t *testing.T, d *appsv1.Deployment) string {
	t.Helper()
	owner := metav1.GetControllerOf(d)
	if owner == nil {
		t.Fatalf("Deployment %s has no owner", d.Name)
	}
	parent := workload.Owner{
		Object:         &metav1.ObjectMeta{Name: owner.Name, Namespace: d.Namespace, UID: owner.UID},
		Kind:           schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind),
		DeploymentName: d.Name,
	}
	return fmt.Sprint(workload.NewStatus(parent, workload.State{Deployment: d}, nil, metav1.Time{}))
}

// waitEvents waits until it was told of each of so many objects that it became ready,
// once, and of an Icecream that each of its Pods was placed, and nothing else. It
// returns how many Events that took.
func waitEvents(t *testing.T, k framework.Kind, ns string, count, replicas int) (all int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("all Events about %d %ss are there", count, k.Kind), func(ctx context.Context) error {
		events, err := framework.Kube().CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + k.Kind})
		if err != nil {
			return err
		}
		all = len(events.Items)
		ready, placed := map[string]bool{}, 0
		for _, event := range events.Items {
			name := event.InvolvedObject.Name
			switch {
			case event.Type != corev1.EventTypeNormal || event.Count != 1:
				t.Fatalf("Event %s %s of %s, %d times", event.Type, event.Reason, name, event.Count)
			case event.Reason == "PodsScheduled" && k == framework.Icecreams:
				pods := 1
				_, _ = fmt.Sscanf(event.Message, "%d Pods", &pods) // of one Pod, its name is said
				placed += pods
			case event.Reason != "Synced" || ready[name]:
				t.Fatalf("Event %s of %s: want Synced once", event.Reason, name)
			default:
				ready[name] = true
			}
		}
		if len(ready) != count || k == framework.Icecreams && placed != count*replicas {
			return fmt.Errorf("%d are said to be ready, %d Pods to be placed", len(ready), placed)
		}
		return nil
	})
	return all
}

// daemonWrites returns what the daemon has written so far, in whatever namespace.
// Left out is what it writes to lead, and what it asks about its clients.
func daemonWrites(t *testing.T) []auditv1.Event {
	t.Helper()
	events, err := framework.Cluster().AuditEvents(func(event auditv1.Event) bool {
		if !strings.HasPrefix(event.UserAgent, framework.DaemonName+"/") || event.ObjectRef == nil {
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
			return event.ObjectRef.Namespace != framework.DaemonName // those of the election
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}
