// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestDroppedWatchesLoseNothing restarts the API server, which then has no watch history, while Foos are created and
// scaled, Deployments drift, and other objects change all the time. Every needed write must be made exactly once. How
// watches are resumed or listed again is tested in informers.
func TestDroppedWatchesLoseNothing(t *testing.T) {
	ns := framework.NewNamespace(t)
	delayer := clustertest.StartDelayer(t, framework.Cluster(), "/apis/apps/v1/deployments",
		"/apis/"+framework.Foos.APIVersion()+"/"+framework.Foos.Resource)
	framework.StartDaemon(t, "--kubeconfig="+delayer.Kubeconfig(t, framework.DaemonName, framework.DaemonName),
		"--controllers="+framework.Foos.Controller,
		"--leader-elect=false") // so that only watches can enqueue
	for i := range changesOfDrop {
		for _, when := range []string{"early", "late"} {
			framework.Foos.Create(t, ns, fmt.Sprintf("scaled-%s-%d", when, i), 1)
			framework.Foos.Create(t, ns, fmt.Sprintf("drifted-%s-%d", when, i), 1)
		}
	}
	touched := []string{"touched-0", "touched-1", "touched-2"}
	for _, name := range touched {
		framework.Foos.Create(t, ns, name, 1)
	}
	const before = 4*changesOfDrop + 3
	waitAllWritten(t, ns, before)
	keepTouching(t, framework.Foos, ns, touched)

	began := time.Now()
	release := delayer.Hold()
	changeBy(t, ns, "early")
	if err := framework.Cluster().RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	changeBy(t, ns, "late")
	writes := writesFor(t, ns, began)
	// On a slow machine, the daemon may find out that the watches are silent.
	unnoticed := time.Since(began) < silenceNoticed
	if unnoticed && len(writes) > 0 {
		t.Fatalf("writes without watch events: %v", writes)
	}
	release()
	waitAllWritten(t, ns, before+2*changesOfDrop)

	time.Sleep(2 * time.Second) // no more writes may follow
	if diff := cmp.Diff(writesOfDrop(), writesFor(t, ns, began)); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
}

// changesOfDrop is the number of objects per change.
const changesOfDrop = 10

// changeBy makes some changes of each kind.
func changeBy(t *testing.T, ns, when string) {
	t.Helper()
	for i := range changesOfDrop {
		framework.Foos.Create(t, ns, fmt.Sprintf("made-%s-%d", when, i), 1)
		if err := framework.Foos.TryPatch(t.Context(), ns, fmt.Sprintf("scaled-%s-%d", when, i), `{"spec":{"replicas":2}}`); err != nil {
			t.Fatal(err)
		}
		drifted, drift := fmt.Sprintf("drifted-%s-%d", when, i), []byte(`{"spec":{"replicas":5}}`)
		if _, err := framework.Kube().AppsV1().Deployments(ns).Patch(t.Context(), drifted, types.MergePatchType, drift,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// writesOfDrop returns the writes that all these changes need.
func writesOfDrop() map[string]int {
	want := map[string]int{}
	for i := range changesOfDrop {
		for _, when := range []string{"early", "late"} {
			want[fmt.Sprintf("create deployments made-%s-%d: 201", when, i)] = 1
			want[fmt.Sprintf("patch foos/status made-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch deployments scaled-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch foos/status scaled-%s-%d: 200", when, i)] = 1
			want[fmt.Sprintf("patch deployments drifted-%s-%d: 200", when, i)] = 1
		}
	}
	return want
}

// writesFor returns the controller's writes since then, with their results. Conflicts are
// left out: on a busy machine a watch may be more than 30 seconds behind. The controller
// does not wait longer, and its next write conflicts.
func writesFor(t *testing.T, ns string, since time.Time) map[string]int {
	t.Helper()
	events := framework.Audit(t, cluster.ByUserAgent(framework.Foos.Controller), cluster.InNamespace(ns),
		framework.IsWrite, func(event auditv1.Event) bool {
			return event.RequestReceivedTimestamp.After(since)
		})
	writes := map[string]int{}
	for _, event := range events {
		if event.ResponseStatus.Code == http.StatusConflict {
			continue
		}
		writes[fmt.Sprintf("%s %s: %d", cluster.Call(event), event.ObjectRef.Name, event.ResponseStatus.Code)]++
	}
	return writes
}

// waitAllWritten waits until there are this many Foos, each with its Deployment and an
// up-to-date status. It waits long: TCP may pause a connection that was not read for a
// minute for two more minutes.
func waitAllWritten(t *testing.T, ns string, count int) {
	t.Helper()
	clustertest.WaitWithin(t, 10*time.Minute, fmt.Sprintf("%d Foos are up to date", count), func(ctx context.Context) error {
		all, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		deployments, err := framework.Kube().AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(all.Items) != count || len(deployments.Items) != count {
			return fmt.Errorf("there are %d Foos and %d Deployments", len(all.Items), len(deployments.Items))
		}
		replicas := map[string]int32{}
		for _, d := range deployments.Items {
			replicas[d.Name] = *d.Spec.Replicas
		}
		for _, foo := range all.Items {
			if *foo.Spec.Replicas != replicas[foo.Name] || foo.Status.ObservedGeneration != foo.Generation ||
				!meta.IsStatusConditionTrue(foo.Status.Conditions, "Reconciling") {
				return fmt.Errorf("%s asks for %d replicas in generation %d, its Deployment has %d, its status is %+v", foo.Name, *foo.Spec.Replicas, foo.Generation, replicas[foo.Name], foo.Status)
			}
		}
		return nil
	})
}

// silenceNoticed is slightly less than the time after which the daemon replaces a silent watch.
const silenceNoticed = 3*time.Minute - 10*time.Second
