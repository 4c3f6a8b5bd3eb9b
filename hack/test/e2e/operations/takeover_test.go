// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// wantWrites compares all writes of the controller in a namespace, by call.
func wantWrites(t *testing.T, k framework.Kind, ns string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, k.Writes(t, ns)); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", k.Controller, diff)
	}
}

// inherited are the Foos that sample-controller syncs before the daemon.
var inherited = []struct {
	name     string
	declared int    // replicas, 0 for none
	edit     string // another client's edit of the Deployment, as in EditDeployment
	replicas int    // after the edit
}{
	{"plain", 2, "", 2},
	{"labelled", 1, "label DEPLOYMENT team=blue", 1},
	{"annotated", 1, "annotate DEPLOYMENT team=blue", 1},
	{"sidecar", 2, `patch DEPLOYMENT -p={"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"busybox"}]}}}}`, 2},
	{"limited", 1, "set resources DEPLOYMENT -c=nginx --limits=cpu=200m", 1},
	{"pinned", 1, "set image DEPLOYMENT nginx=nginx:1.29", 1},
	{"restarted", 1, "rollout restart DEPLOYMENT", 1},
	{"scaled", 0, "scale DEPLOYMENT --replicas=3", 3},
}

// unserved are Foos for which sample-controller cannot do anything: the name of the Deployment
// is taken or missing.
var unserved = []string{"obstructed", "unnamed"}

// TestTakeover migrates from sample-controller to the daemon, back, and to the daemon again,
// as described in the README. The workload does not change.
func TestTakeover(t *testing.T) {
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	installSampleControllerCRD(t)
	theirs := framework.StartSampleController(t)
	replicas := inherit(t, ns)
	theirs.Stop()
	before := framework.TakeSnapshot(t, ns)

	installCRDs(t)
	ours := framework.StartReplica(t, framework.OneWorker...).Ready()
	waitServed(t, ns, replicas)
	for _, name := range unserved {
		framework.Foos.WaitStalled(t, ns, name)
	}
	framework.Foos.WaitIdle(t)
	framework.WantSameSnapshot(t, "the takeover", ns, before)
	wantWrites(t, framework.Foos, ns, map[string]int{"patch foos/status": len(inherited) + len(unserved)}) // one for each Foo

	// Declaring the existing state changes nothing. Declaring another state changes only that.
	framework.Foos.Patch(t, ns, "pinned", `{"spec":{"image":"nginx:1.29"}}`)
	waitServed(t, ns, replicas)
	framework.WantSameSnapshot(t, "declaring the existing image", ns, before)
	framework.Foos.Patch(t, ns, "sidecar", `{"spec":{"replicas":3}}`)
	replicas["sidecar"] = 3
	waitServed(t, ns, replicas)
	wantGrown(t, "our scaling", ns, before)
	if got := framework.Foos.Writes(t, ns)["patch deployments"]; got != 1 {
		t.Errorf("Deployments were patched %d times, want 1, for the scaled Foo", got)
	}
	if got, want := framework.ManagedBy(framework.Deployment(t, ns, "sidecar").ManagedFields, "foo-controller", ""), `{"f:spec":{"f:replicas":{}}}`; got != want {
		t.Errorf("managed fields of the scaled Deployment: %s, want %s", got, want)
	}
	ours.Stop()
	before = framework.TakeSnapshot(t, ns)
	written := framework.Foos.Writes(t, ns)

	theirs = framework.StartSampleController(t)
	waitServedBySampleController(t, ns, replicas)
	framework.WantSameSnapshot(t, "the migration back", ns, before)
	framework.Foos.Patch(t, ns, "plain", `{"spec":{"replicas":3}}`)
	replicas["plain"] = 3
	waitServedBySampleController(t, ns, replicas)
	wantGrown(t, "sample-controller's scaling", ns, before)
	theirs.Stop()
	before = framework.TakeSnapshot(t, ns)

	ours = framework.StartReplica(t, framework.OneWorker...).Ready()
	waitServed(t, ns, replicas)
	framework.Foos.WaitIdle(t)
	framework.WantSameSnapshot(t, "the second takeover", ns, before)
	written["patch foos/status"] += len(inherited) // sample-controller writes no status of the others
	wantWrites(t, framework.Foos, ns, written)
	ours.Stop()
}

// inherit creates the inherited and the unserved Foos while sample-controller runs, and
// returns the final replicas of each inherited Foo.
func inherit(t *testing.T, ns string) (replicas map[string]int) {
	t.Helper()
	var manifest strings.Builder
	for _, foo := range inherited {
		manifest.WriteString(framework.Foos.Manifest(foo.name, foo.name, foo.declared))
	}
	framework.Kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=nginx")
	manifest.WriteString(framework.Foos.Manifest("obstructed", "foreign", 2))
	manifest.WriteString(framework.Foos.Manifest("unnamed", `""`, 2))
	framework.ApplyManifest(t, ns, manifest.String())
	replicas = map[string]int{}
	for _, foo := range inherited {
		framework.WaitDeployment(t, ns, foo.name)
		if foo.edit != "" {
			framework.EditDeployment(t, ns, foo.name, foo.edit)
		}
		replicas[foo.name] = foo.replicas
	}
	waitServedBySampleController(t, ns, replicas)
	framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/foreign", "--timeout=300s")
	return replicas
}

// waitServed waits until all of these Foos are Ready, with all their Pods.
func waitServed(t *testing.T, ns string, replicas map[string]int) {
	t.Helper()
	for name, want := range replicas {
		framework.Foos.WaitReady(t, ns, name, want)
		framework.Foos.WantPods(t, ns, name, want)
	}
}

// waitServedBySampleController waits until sample-controller reports all replicas of these
// Foos as available, and there is no other Foo. Its status write has dropped the fields that
// it does not know.
func waitServedBySampleController(t *testing.T, ns string, replicas map[string]int) {
	t.Helper()
	for name, want := range replicas {
		clustertest.WaitUntil(t, fmt.Sprintf("sample-controller reports %d replicas of Foo %s", want, name), func(ctx context.Context) error {
			foo, err := framework.Sample().SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
			if err == nil && (int(foo.Status.AvailableReplicas) != want || len(foo.Status.Conditions) > 0) {
				err = fmt.Errorf("status %+v", foo.Status)
			}
			return err
		})
		framework.Kubectl(t, "-n", ns, "rollout", "status", "deployment/"+name, "--timeout=300s")
		framework.Foos.WantPods(t, ns, name, want)
	}
}

// wantGrown compares the current state with an earlier one after Deployments were scaled up:
// there are more Pods, and nothing else was added or removed.
func wantGrown(t *testing.T, what, ns string, before framework.Snapshot) {
	t.Helper()
	now := framework.TakeSnapshot(t, ns)
	for name, d := range now.Deployments {
		d.Generation, d.Spec.Replicas = before.Deployments[name].Generation, before.Deployments[name].Spec.Replicas
		now.Deployments[name] = d
	}
	maps.DeleteFunc(now.Pods, func(name string, _ types.UID) bool { _, was := before.Pods[name]; return !was })
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("%s changed (-before +after):\n%s", what, diff)
	}
}
