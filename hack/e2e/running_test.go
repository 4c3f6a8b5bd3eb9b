// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aggregator is the controller that writes status.pods of both kinds.
const aggregator = "status-aggregator-controller"

func TestExamplesBecomeRunningPods(t *testing.T) {
	freeLease(t)
	r := startReplica(t).ready()
	overKinds(t, func(t *testing.T, k kind) {
		ns, example := newNamespace(t), "example-"+k.singular
		object := k.singular + "/" + example
		kubectl(t, "-n", ns, "apply", "-f", filepath.Join(manifests(t, "examples"), k.singular+".yaml"))
		kubectl(t, "-n", ns, "wait", object, "--for=condition=Ready", "--timeout=60s")
		k.wantPods(t, ns, example, 1)

		for _, replicas := range []int{3, 0, 2} {
			kubectl(t, "-n", ns, "scale", object, fmt.Sprintf("--replicas=%d", replicas))
			k.waitReady(t, ns, example, replicas)
			k.wantPods(t, ns, example, replicas)
		}

		// Drift is undone, and what is not declared stays.
		kubectl(t, "-n", ns, "annotate", "deployment/"+example, "team=blue")
		kubectl(t, "-n", ns, "scale", "deployment/"+example, "--replicas=5")
		k.waitCorrections(t, ns, 4) // three wishes, one correction
		k.waitReady(t, ns, example, 2)
		if got := kubectl(t, "-n", ns, "get", "deployment/"+example, "-o", "jsonpath={.metadata.annotations.team} {.spec.replicas}"); got != "blue 2" {
			t.Errorf("annotation and replicas = %q, want blue 2", got)
		}

		// One Event for each time that it became ready, none for a sync. Those about
		// placements, which an Icecream has too, are another matter.
		events := kubectl(t, "-n", ns, "get", "events", "--field-selector=reason!=PodsScheduled,involvedObject.kind="+k.Kind, "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`)
		if strings.TrimSpace(events) != "Synced" { // the recorder counts repetitions in one
			t.Errorf("reasons of Events = %q, want Synced alone", events)
		}

		kubectl(t, "-n", ns, "delete", object, "--wait")
		waitUntil(t, "the garbage collector has taken the Deployment", func(ctx context.Context) error {
			_, err := kube.AppsV1().Deployments(ns).Get(ctx, example, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	})
	r.stop()
	wantNoDenials(t)
}

func TestRestartWritesNothing(t *testing.T) {
	const count, replicas = 10, 2
	freeLease(t)
	first := startReplica(t).ready()
	namespaces := map[kind]string{}
	for _, k := range kinds {
		namespaces[k] = newNamespace(t)
		for i := range count {
			k.create(t, namespaces[k], fmt.Sprintf("x-%d", i), replicas)
		}
	}
	before := map[kind]map[string]int{}
	for k, ns := range namespaces {
		for i := range count {
			k.waitReady(t, ns, fmt.Sprintf("x-%d", i), replicas)
			k.waitTold(t, ns, fmt.Sprintf("x-%d", i), replicas)
		}
		before[k] = k.writes(t, ns)
		for _, perObject := range []string{"create deployments", "patch " + k.resource + "/status"} {
			if got := before[k][perObject]; got < count {
				t.Errorf("%d calls %q for %d %ss: the audit log does not tell all", got, perObject, count, k.Kind)
			}
		}
		if got := before[k]["create deployments"]; got != count {
			t.Errorf("%d Deployments were created for %d %ss", got, count, k.Kind)
		}
		for call, n := range writesBy(t, aggregator, ns) {
			before[k][aggregator+": "+call] = n
		}
	}

	// Leave the Lease to the next and wait until it has served one more object of each
	// kind: with one worker each it has then been through all that were there.
	holder := waitLeader(t, "")
	next := startReplica(t, append([]string{"--concurrent-status-aggregator-syncs=1"}, oneWorker...)...).ready()
	first.stop()
	waitLeader(t, holder)
	other := newNamespace(t)
	for _, k := range kinds {
		k.create(t, other, "barrier-"+k.singular, 1)
		k.waitReady(t, other, "barrier-"+k.singular, 1)
		k.waitTold(t, other, "barrier-"+k.singular, 1)
	}
	for k, ns := range namespaces {
		after := k.writes(t, ns)
		for call, n := range writesBy(t, aggregator, ns) {
			after[aggregator+": "+call] = n
		}
		if diff := cmp.Diff(before[k], after); diff != "" {
			t.Errorf("writes for %ss (-before +after the restart):\n%s", k.Kind, diff)
		}
	}
	next.stop()
	wantNoDenials(t)
}

// waitTold waits until all that there is to say about so many Pods of an object is
// said, by whichever controller.
func (k kind) waitTold(t *testing.T, ns, name string, pods int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%d Pods of %s %s are told", pods, k.Kind, name), func(ctx context.Context) error {
		object, err := k.in(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		read, err := k.read(object)
		if err != nil {
			return err
		}
		placements, _, err := unstructured.NestedSlice(object.Object, "status", "placements")
		if err != nil {
			return err
		}
		if p := read.Status.Pods; p == nil || int(p.Total) != pods || int(p.Ready) != pods || k == icecreams && len(placements) != pods {
			return fmt.Errorf("status.pods %+v, placements %v", p, placements)
		}
		return nil
	})
}
