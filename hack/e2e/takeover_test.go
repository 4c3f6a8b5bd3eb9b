// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// inherited are the Foos that sample-controller has served before we do.
var inherited = []struct {
	name     string
	declared int    // replicas, 0 for none
	edit     string // what somebody has done to its Deployment, as in editDeployment
	replicas int    // after that
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

// unserved are Foos that sample-controller takes and can do nothing for: the name of
// the Deployment is somebody else's, or there is none.
var unserved = []string{"obstructed", "unnamed"}

// TestTakeover changes from sample-controller to us, back, and to us again, as the
// README tells to. What runs does not notice.
func TestTakeover(t *testing.T) {
	freeLease(t)
	ns := newNamespace(t)
	installSampleControllerCRD(t)
	theirs := startSampleController(t)
	replicas := inherit(t, ns)
	theirs.stop()
	before := running(t, ns)

	installCRDs(t)
	ours := startReplica(t, oneWorker...).ready()
	waitServed(t, ns, replicas)
	for _, name := range unserved {
		foos.waitStalled(t, ns, name)
	}
	foos.waitIdle(t)
	wantSame(t, "the takeover", ns, before)
	foos.wantWrites(t, ns, map[string]int{"patch foos/status": len(inherited) + len(unserved)}) // one for each

	// To declare what is there changes nothing; to declare something else, just that.
	foos.patch(t, ns, "pinned", `{"spec":{"image":"nginx:1.29"}}`)
	waitServed(t, ns, replicas)
	wantSame(t, "an image that it has", ns, before)
	foos.patch(t, ns, "sidecar", `{"spec":{"replicas":3}}`)
	replicas["sidecar"] = 3
	waitServed(t, ns, replicas)
	wantGrown(t, "our scaling", ns, before)
	if got := foos.writes(t, ns)["update deployments/scale"]; got != 1 {
		t.Errorf("Deployments were scaled %d times, want 1: that of the one that was scaled", got)
	}
	if got, want := managedBy(deployment(t, ns, "sidecar").ManagedFields, "foo-controller", "scale"), `{"f:spec":{"f:replicas":{}}}`; got != want {
		t.Errorf("of the Deployment that we have scaled we manage %s, want %s", got, want)
	}
	ours.stop()
	before = running(t, ns)
	written := foos.writes(t, ns)

	theirs = startSampleController(t)
	waitServedBySampleController(t, ns, replicas)
	wantSame(t, "the way back", ns, before)
	foos.patch(t, ns, "plain", `{"spec":{"replicas":3}}`)
	replicas["plain"] = 3
	waitServedBySampleController(t, ns, replicas)
	wantGrown(t, "sample-controller's scaling", ns, before)
	theirs.stop()
	before = running(t, ns)

	ours = startReplica(t, oneWorker...).ready()
	waitServed(t, ns, replicas)
	foos.waitIdle(t)
	wantSame(t, "the second takeover", ns, before)
	written["patch foos/status"] += len(inherited) // of the others sample-controller writes no status
	foos.wantWrites(t, ns, written)
	ours.stop()
	wantNoDenials(t)
}

// TestTakeoverEndsWhatARenameHasLeft: sample-controller forgets a Deployment when
// its Foo names another. It still belongs to the Foo, and we end it.
func TestTakeoverEndsWhatARenameHasLeft(t *testing.T) {
	freeLease(t)
	ns := newNamespace(t)
	installSampleControllerCRD(t)
	theirs := startSampleController(t)
	applyManifest(t, ns, foos.manifest("renamed", "first", 2))
	waitDeployment(t, ns, "first")
	foos.patch(t, ns, "renamed", `{"spec":{"deploymentName":"second"}}`)
	for _, name := range []string{"first", "second"} {
		waitDeployment(t, ns, name)
		kubectl(t, "-n", ns, "rollout", "status", "deployment/"+name, "--timeout=60s")
	}
	theirs.stop()
	second := deployment(t, ns, "second")

	installCRDs(t)
	ours := startReplica(t, oneWorker...).ready()
	waitUntil(t, "the Deployment of the former name is gone", func(ctx context.Context) error {
		_, err := kube.AppsV1().Deployments(ns).Get(ctx, "first", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	foos.waitReady(t, ns, "renamed", 2)
	foos.wantPods(t, ns, "renamed", 2)
	if got := deployment(t, ns, "second"); got.UID != second.UID || got.Generation != second.Generation {
		t.Errorf("the present Deployment was %s in generation %d, is %s in %d", second.UID, second.Generation, got.UID, got.Generation)
	}
	ours.stop()
	wantNoDenials(t)
}

// inherit makes the inherited and the unserved Foos while sample-controller runs,
// and returns how many replicas each of the inherited has in the end.
func inherit(t *testing.T, ns string) (replicas map[string]int) {
	t.Helper()
	var manifest strings.Builder
	for _, foo := range inherited {
		manifest.WriteString(foos.manifest(foo.name, foo.name, foo.declared))
	}
	kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=nginx")
	manifest.WriteString(foos.manifest("obstructed", "foreign", 2))
	manifest.WriteString(foos.manifest("unnamed", `""`, 2))
	applyManifest(t, ns, manifest.String())
	replicas = map[string]int{}
	for _, foo := range inherited {
		waitDeployment(t, ns, foo.name)
		if foo.edit != "" {
			editDeployment(t, ns, foo.name, foo.edit)
		}
		replicas[foo.name] = foo.replicas
	}
	waitServedBySampleController(t, ns, replicas)
	kubectl(t, "-n", ns, "rollout", "status", "deployment/foreign", "--timeout=60s")
	return replicas
}

// waitServed waits until all of these Foos are ready and what they had before,
// if anything, is gone.
func waitServed(t *testing.T, ns string, replicas map[string]int) {
	t.Helper()
	for name, want := range replicas {
		foos.waitReady(t, ns, name, want)
		foos.wantPods(t, ns, name, want)
	}
}

// waitServedBySampleController waits until sample-controller says of these Foos
// that all replicas are available, and there is no other. Its write of the status
// has dropped what it does not know.
func waitServedBySampleController(t *testing.T, ns string, replicas map[string]int) {
	t.Helper()
	for name, want := range replicas {
		waitUntil(t, fmt.Sprintf("sample-controller gives %d replicas to Foo %s", want, name), func(ctx context.Context) error {
			foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
			if err == nil && (int(foo.Status.AvailableReplicas) != want || len(foo.Status.Conditions) > 0) {
				err = fmt.Errorf("status %+v", foo.Status)
			}
			return err
		})
		kubectl(t, "-n", ns, "rollout", "status", "deployment/"+name, "--timeout=60s")
		foos.wantPods(t, ns, name, want)
	}
}

// wantSame compares what runs with what did.
func wantSame(t *testing.T, what, ns string, before snapshot) {
	t.Helper()
	if diff := cmp.Diff(before, running(t, ns)); diff != "" {
		t.Errorf("%s changed (-before +after):\n%s", what, diff)
	}
}

// wantGrown compares what runs with what did, after Deployments have been scaled up:
// there are more Pods, and nothing else is new or gone.
func wantGrown(t *testing.T, what, ns string, before snapshot) {
	t.Helper()
	now := running(t, ns)
	for name, d := range now.Deployments {
		d.Generation, d.Spec.Replicas = before.Deployments[name].Generation, before.Deployments[name].Spec.Replicas
		now.Deployments[name] = d
	}
	maps.DeleteFunc(now.Pods, func(name string, _ types.UID) bool { _, was := before.Pods[name]; return !was })
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("%s changed (-before +after):\n%s", what, diff)
	}
}
