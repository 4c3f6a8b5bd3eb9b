// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestExamplesRun(t *testing.T) {
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	framework.OverKinds(t, func(t *testing.T, k framework.Kind) {
		ns, example := framework.NewNamespace(t), "example-"+k.Singular
		object := k.Singular + "/" + example
		framework.Kubectl(t, "-n", ns, "apply", "-f", filepath.Join(framework.Manifests(t, "examples"), k.Singular+".yaml"))
		framework.Kubectl(t, "-n", ns, "wait", object, "--for=condition=Ready", "--timeout=300s")
		k.WantPods(t, ns, example, 1)
		if k == framework.Icecreams {
			wantPlacementReported(t, r.Log, ns, example)
		}

		for _, replicas := range []int{3, 0, 2} {
			framework.Kubectl(t, "-n", ns, "scale", object, fmt.Sprintf("--replicas=%d", replicas))
			k.WaitReady(t, ns, example, replicas)
			k.WantPods(t, ns, example, replicas)
		}
		table := strings.Split(framework.Kubectl(t, "-n", ns, "get", object), "\n")
		if got := strings.Join(strings.Fields(table[0]), " "); got != "NAME DEPLOYMENT DESIRED AVAILABLE READY REASON PODS AGE" {
			t.Errorf("columns = %q", got)
		}
		if got, want := strings.Join(strings.Fields(table[1])[:6], " "), example+" "+example+" 2 2 True Available"; got != want {
			t.Errorf("row = %q, want %q", got, want)
		}

		// Drift is corrected, and undeclared fields stay.
		framework.Kubectl(t, "-n", ns, "annotate", "deployment/"+example, "team=blue")
		framework.Kubectl(t, "-n", ns, "scale", "deployment/"+example, "--replicas=5")
		waitCorrections(t, k, ns, 4) // three changes of the spec, one correction
		k.WaitReady(t, ns, example, 2)
		if got := framework.Kubectl(t, "-n", ns, "get", "deployment/"+example, "-o", "jsonpath={.metadata.annotations.team} {.spec.replicas}"); got != "blue 2" {
			t.Errorf("annotation and replicas = %q, want blue 2", got)
		}

		// One Event each time the object became Ready and one for the correction, none for other syncs. Icecreams also
		// have Events about placements, which do not count here.
		events := framework.Kubectl(t, "-n", ns, "get", "events", "--field-selector=reason!=PodsScheduled,involvedObject.kind="+k.Kind, "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`)
		// The recorder counts repetitions in one Event.
		if got := strings.Fields(events); len(got) != 2 || !slices.Contains(got, "Synced") || !slices.Contains(got, "Corrected") {
			t.Errorf("reasons of Events = %q, want only Synced and Corrected", events)
		}

		framework.Kubectl(t, "-n", ns, "delete", object, "--wait")
		waitDeployments(t, ns) // the garbage collector has deleted it
	})
	r.Stop()
}

// wantPlacementReported checks that the log, kubectl and an Event name the Node of an
// Icecream's only Pod.
func wantPlacementReported(t *testing.T, log fmt.Stringer, ns, name string) {
	t.Helper()
	waitIcecream(t, ns, name, 1)
	icecream, err := framework.Sample().IcecreamV1alpha1().Icecreams(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := icecream.Status.Placements[0]
	line := fmt.Sprintf(`] "Pod scheduled" icecream=%q pod=%q node=%q`, ns+"/"+name, ns+"/"+p.Pod, p.Node)
	if !strings.Contains(log.String(), line) {
		t.Errorf("the log does not have %s", line)
	}
	clustertest.WaitUntil(t, "kubectl and one Event name the Pod's Node", func(context.Context) error {
		if out := framework.Kubectl(t, "-n", ns, "get", "icecream"); !strings.Contains(out, "1/1 ready on "+p.Node) {
			return fmt.Errorf("%s", out)
		}
		out := framework.Kubectl(t, "-n", ns, "get", "events", "--field-selector=reason=PodsScheduled", "--no-headers", "-o", "custom-columns=M:.message,C:.count")
		if want := fmt.Sprintf("Pod %s was placed on %s 1", p.Pod, p.Node); strings.Join(strings.Fields(out), " ") != want {
			return fmt.Errorf("%q", out)
		}
		return nil
	})
}
