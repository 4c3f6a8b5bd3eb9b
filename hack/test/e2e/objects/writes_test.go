// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"net/http"
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
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// TestWritesFollowChanges creates Foos and Icecreams and compares the daemon's writes with the
// changes of their Deployments and Pods. Then nothing happens, and nothing may be written.
func TestWritesFollowChanges(t *testing.T) {
	rest := time.Duration(framework.Count(60, 10)) * time.Second
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	holder := framework.WaitLeader(t, "")
	namespaces, before := map[framework.Kind]string{}, map[framework.Kind]map[string]int{}
	for _, k := range framework.Kinds {
		namespaces[k] = framework.NewNamespace(t)
	}
	for k, ns := range namespaces {
		before[k] = writesFollowChanges(t, k, ns)
	}

	writes := len(daemonWrites(t))
	time.Sleep(rest) // nothing may be written in this time
	for _, event := range daemonWrites(t)[writes:] {
		t.Errorf("%s %s in %s while nothing happened", cluster.Call(event), event.ObjectRef.Name, event.ObjectRef.Namespace)
	}

	// With one worker, an object created last is synced after all others.
	r.Stop()
	r = framework.StartReplica(t, append(framework.OneWorker, "--concurrent-status-aggregator-syncs=1")...).Ready()
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
}

// writesFollowChanges creates objects of one kind, waits until they are fully reported, and
// returns the daemon's requests.
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
	deployments.WaitFor(t, "all Deployments are reported as available", func(deployments []*appsv1.Deployment) error {
		for _, d := range deployments {
			if d.Status.AvailableReplicas != replicas {
				return fmt.Errorf("%s is not", d.Name)
			}
		}
		return nil
	})

	allStatusWrites := wantStatusWrites(t, k, ns, deployments, replicas)
	objects.WaitFor(t, "each write of a status is seen as a change", func([]*samplev1alpha1.Foo) error {
		if got := len(objects.Changes()) - count; got != allStatusWrites {
			return fmt.Errorf("%d writes, %d changes", allStatusWrites, got)
		}
		return nil
	})

	all := framework.Requests(t, ns)
	want := map[string]int{"create deployments": count, "patch " + k.Resource + "/status": allStatusWrites, "create events": events}
	// Before its first writes, a new leader checks whether its cache is stale: for each object until its cache, which may
	// lag on a busy machine, has caught up.
	looks := "list " + k.Resource
	if n := all[looks]; n > 0 && n < count {
		want[looks] = n
	}
	// Two controllers write each status, each based on what it has seen of the other's writes.
	// Neither repeats a refused write for the same version.
	refused := "patch " + k.Resource + "/status (409)"
	if n := all[refused]; n > 0 && n <= allStatusWrites {
		t.Logf("%d status writes were refused because of another one", n)
		want[refused] = n
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
	return all
}

// wantStatusWrites checks that the controller wrote each object's status only when it had
// changed. It returns the number of status writes of the whole daemon.
func wantStatusWrites(t *testing.T, k framework.Kind, ns string, deployments *framework.History[*appsv1.Deployment],
	replicas int) (allStatusWrites int) {
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
			n += replicas // each Pod may be placed at a different time
		}
		if got := statusWrites[name]; got > n || got < 1 {
			t.Errorf("%s wrote the status of %s %d times for %d changes", k.Controller, name, got, n)
		}
	}
	t.Logf("%ss: %d status writes by %s for %d changes of Deployments, %d by %s; %d changes of Deployments in all",
		k.Kind, ownStatusWrites, k.Controller, allChanges, allStatusWrites-ownStatusWrites, framework.Aggregator,
		len(deployments.Changes()))
	return allStatusWrites
}

// statusOf spells out the wanted status of the Deployment's owner for the given state of the
// Deployment.
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
	status := workload.NewStatus(parent, workload.State{Deployment: d}, workloadv1alpha1.Status{}, metav1.Time{})
	status.UnavailableSince = nil // it changes only with the conditions
	return fmt.Sprint(status)
}

// waitEvents waits until each of count objects has exactly one Event that it became Ready, and
// each Pod of an Icecream one about its placement, and there are no others. It returns the
// number of Events.
func waitEvents(t *testing.T, k framework.Kind, ns string, count, replicas int) (all int) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("all Events about %d %ss are recorded", count, k.Kind), func(ctx context.Context) error {
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
				_, _ = fmt.Sscanf(event.Message, "%d Pods", &pods) // for a single Pod, the message has its name
				placed += pods
			case event.Reason != "Synced" || ready[name]:
				t.Fatalf("Event %s of %s: want Synced once", event.Reason, name)
			default:
				ready[name] = true
			}
		}
		if len(ready) != count || k == framework.Icecreams && placed != count*replicas {
			return fmt.Errorf("Events for %d objects that are Ready, %d placed Pods", len(ready), placed)
		}
		return nil
	})
	return all
}

// daemonWrites returns the daemon's writes so far in all namespaces, without those for leader
// election and the reviews of its clients.
func daemonWrites(t *testing.T) []auditv1.Event {
	t.Helper()
	events := framework.Audit(t, func(event auditv1.Event) bool {
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
			return event.ObjectRef.Namespace != framework.DaemonName // for leader election
		}
		return true
	})
	return events
}
