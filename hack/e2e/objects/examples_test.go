// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

func TestExamplesRun(t *testing.T) {
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	framework.OverKinds(t, func(t *testing.T, k framework.Kind) {
		ns, example := framework.NewNamespace(t), "example-"+k.Singular
		object := k.Singular + "/" + example
		framework.Kubectl(t, "-n", ns, "apply", "-f", filepath.Join(framework.Manifests(t, "examples"), k.Singular+".yaml"))
		framework.Kubectl(t, "-n", ns, "wait", object, "--for=condition=Ready", "--timeout=60s")
		k.WantPods(t, ns, example, 1)

		for _, replicas := range []int{3, 0, 2} {
			framework.Kubectl(t, "-n", ns, "scale", object, fmt.Sprintf("--replicas=%d", replicas))
			k.WaitReady(t, ns, example, replicas)
			k.WantPods(t, ns, example, replicas)
		}

		// Drift is undone, and what is not declared stays.
		framework.Kubectl(t, "-n", ns, "annotate", "deployment/"+example, "team=blue")
		framework.Kubectl(t, "-n", ns, "scale", "deployment/"+example, "--replicas=5")
		waitCorrections(t, k, ns, 4) // three wishes, one correction
		k.WaitReady(t, ns, example, 2)
		if got := framework.Kubectl(t, "-n", ns, "get", "deployment/"+example, "-o", "jsonpath={.metadata.annotations.team} {.spec.replicas}"); got != "blue 2" {
			t.Errorf("annotation and replicas = %q, want blue 2", got)
		}

		// One Event for each time that it became ready, none for a sync. Those about
		// placements, which an Icecream has too, are another matter.
		events := framework.Kubectl(t, "-n", ns, "get", "events", "--field-selector=reason!=PodsScheduled,involvedObject.kind="+k.Kind, "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`)
		if strings.TrimSpace(events) != "Synced" { // the recorder counts repetitions in one
			t.Errorf("reasons of Events = %q, want Synced alone", events)
		}

		framework.Kubectl(t, "-n", ns, "delete", object, "--wait")
		clustertest.WaitUntil(t, "the garbage collector has taken the Deployment", func(ctx context.Context) error {
			_, err := framework.Kube().AppsV1().Deployments(ns).Get(ctx, example, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	})
	r.Stop()
	framework.WantNoDenials(t)
}

func TestRestartWritesNothing(t *testing.T) {
	const count, replicas = 10, 2
	framework.FreeLease(t)
	first := framework.StartReplica(t).Ready()
	namespaces := map[framework.Kind]string{}
	for _, k := range framework.Kinds {
		namespaces[k] = framework.NewNamespace(t)
		for i := range count {
			k.Create(t, namespaces[k], fmt.Sprintf("x-%d", i), replicas)
		}
	}
	before := map[framework.Kind]map[string]int{}
	for k, ns := range namespaces {
		for i := range count {
			k.WaitReady(t, ns, fmt.Sprintf("x-%d", i), replicas)
			k.WaitPodsReported(t, ns, fmt.Sprintf("x-%d", i), replicas)
		}
		before[k] = k.Writes(t, ns)
		for _, perObject := range []string{"create deployments", "patch " + k.Resource + "/status"} {
			if got := before[k][perObject]; got < count {
				t.Errorf("%d calls %q for %d %ss: the audit log does not tell all", got, perObject, count, k.Kind)
			}
		}
		if got := before[k]["create deployments"]; got != count {
			t.Errorf("%d Deployments were created for %d %ss", got, count, k.Kind)
		}
		for call, n := range framework.WritesBy(t, framework.Aggregator, ns) {
			before[k][framework.Aggregator+": "+call] = n
		}
	}

	// Leave the Lease to the next and wait until it has served one more object of each
	// kind: with one worker each it has then been through all that were there.
	holder := framework.WaitLeader(t, "")
	next := framework.StartReplica(t, append([]string{"--concurrent-status-aggregator-syncs=1"}, framework.OneWorker...)...).Ready()
	first.Stop()
	framework.WaitLeader(t, holder)
	other := framework.NewNamespace(t)
	for _, k := range framework.Kinds {
		k.Create(t, other, "barrier-"+k.Singular, 1)
		k.WaitReady(t, other, "barrier-"+k.Singular, 1)
		k.WaitPodsReported(t, other, "barrier-"+k.Singular, 1)
	}
	for k, ns := range namespaces {
		after := k.Writes(t, ns)
		for call, n := range framework.WritesBy(t, framework.Aggregator, ns) {
			after[framework.Aggregator+": "+call] = n
		}
		if diff := cmp.Diff(before[k], after); diff != "" {
			t.Errorf("writes for %ss (-before +after the restart):\n%s", k.Kind, diff)
		}
	}
	next.Stop()
	framework.WantNoDenials(t)
}
