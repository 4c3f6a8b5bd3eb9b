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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

func TestDeletion(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, ns string){
		"in background":            deleteInBackground,
		"in foreground":            deleteInForeground,
		"leaving an orphan":        deleteLeavingAnOrphan,
		"held by a finalizer":      deleteHeld,
		"and creation of the name": recreate,
	})
}

func deleteInBackground(t *testing.T, ns string) {
	before := serveTwo(t, ns)
	kubectl(t, "-n", ns, "delete", "foo", "a", "--cascade=background")
	waitDeployments(t, ns)
	wantPods(t, ns, "a", 0)
	waitIdle(t)
	wantNothingNew(t, ns, before)
}

func deleteInForeground(t *testing.T, ns string) {
	before := serveTwo(t, ns)
	kubectl(t, "-n", ns, "delete", "foo", "a", "--cascade=foreground") // returns when it is gone
	if _, err := kube.AppsV1().Deployments(ns).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Foo was gone before its Deployment: %v", err)
	}
	wantPods(t, ns, "a", 0)
	waitIdle(t)
	wantNothingNew(t, ns, before)
}

func deleteLeavingAnOrphan(t *testing.T, ns string) {
	writesBefore := serveTwo(t, ns)
	before := running(t, ns)
	kubectl(t, "-n", ns, "delete", "foo", "a", "--cascade=orphan")
	waitIdle(t)
	orphaned := before.Deployments["a"]
	orphaned.OwnerReferences = nil
	before.Deployments["a"] = orphaned
	wantSame(t, "an orphaning deletion", ns, before)
	wantNothingNew(t, ns, writesBefore)

	// A Foo of the name does not take it for its own, but says how to give it to it.
	createFooNaming(t, ns, "a", "a")
	waitMessage(t, ns, "a", "Stalled", "DeploymentConflict", `Deployment "a" was made for a Foo of this name but is owned by nobody`)
	wantSame(t, "the new Foo", ns, before)
}

// deleteHeld wakes a Foo that is being deleted in every way there is.
func deleteHeld(t *testing.T, ns string) {
	before := serveTwo(t, ns)
	patchFoo(t, ns, "a", fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, hold))
	kubectl(t, "-n", ns, "delete", "foo", "a", "--wait=false")
	for _, wake := range []struct {
		what string
		do   func()
	}{
		{"it is touched", func() {
			if err := touch(t.Context(), ns, "a", "again"); err != nil {
				t.Fatal(err)
			}
		}},
		{"it wants other replicas and another image", func() { patchFoo(t, ns, "a", `{"spec":{"replicas":3,"image":"nginx:1.29"}}`) }},
		{"its Deployment is scaled", func() { kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=1") }},
		{"its Deployment is deleted", func() { kubectl(t, "-n", ns, "delete", "deployment", "a") }},
		{"it is renamed", func() { patchFoo(t, ns, "a", `{"spec":{"deploymentName":"b"}}`) }},
	} {
		wake.do()
		waitIdle(t)
		if diff := cmp.Diff(before, writes(t, ns, accepted)); diff != "" {
			t.Fatalf("%s: calls of foo-controller (-before +after):\n%s", wake.what, diff)
		}
	}
	patchFoo(t, ns, "a", `{"metadata":{"finalizers":null}}`)
	waitDeployments(t, ns)
	waitIdle(t)
	wantNothingNew(t, ns, before)
}

// serveTwo makes a Foo "a" with two replicas, waits until all is at rest, and
// returns what foo-controller has written.
func serveTwo(t *testing.T, ns string) map[string]int {
	t.Helper()
	declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	waitReady(t, ns, "a", 2)
	waitIdle(t)
	return writes(t, ns, accepted)
}

// wantNothingNew checks that foo-controller has written nothing more. One attempt may
// have been refused: it is told by one watch that the Deployment goes, and by another
// that the Foo does.
func wantNothingNew(t *testing.T, ns string, before map[string]int) {
	t.Helper()
	if diff := cmp.Diff(before, writes(t, ns, accepted)); diff != "" {
		t.Errorf("calls of foo-controller (-before +after):\n%s", diff)
	}
	for call, n := range writes(t, ns, func(event auditv1.Event) bool { return !accepted(event) }) {
		if call != "patch foos/status" || n > 1 {
			t.Errorf("%d refused calls %s of foo-controller, want at most one of a status", n, call)
		}
	}
}

func accepted(event auditv1.Event) bool { return event.ResponseStatus.Code < 300 }

// recreate deletes a Foo and creates another of its name at once, at moments when
// more or less is still to be written about the dead one. Each wants other replicas
// than the one before, of which its status must speak.
func recreate(t *testing.T, ns string) {
	const times = 20
	foos := record[*samplev1alpha1.Foo](t, sample.SamplecontrollerV1alpha1().Foos(ns).Watch)
	deployments := record[*appsv1.Deployment](t, kube.AppsV1().Deployments(ns).Watch)
	wanted := map[types.UID]int32{}
	for i := range times + 1 {
		replicas := int32(1 + i%4)
		foo := declareFoo(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: &replicas})
		wanted[foo.UID] = replicas
		switch {
		case i%4 == 0: // at rest
			waitReady(t, ns, "a", int(replicas))
		case i%4 == 1: // before or while it waits for the Deployment of the last
		case i%4 == 2: // in a generation that the next one has not yet
			patchFoo(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
			waitObserved(t, ns, "a", 2)
		case i%4 == 3: // in the midst of many statuses
			waitObserved(t, ns, "a", 1)
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
		}
		if i == times {
			break
		}
		background := metav1.DeletePropagationBackground
		if err := sample.SamplecontrollerV1alpha1().Foos(ns).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
	}
	wantOnly(t, ns, "a", "a")
	wantPods(t, ns, "a", 1+times%4)

	foos.waitFor(t, "the watch has told all", func(left []*samplev1alpha1.Foo) error {
		if len(left) != 1 || !meta.IsStatusConditionTrue(left[0].Status.Conditions, "Ready") {
			return fmt.Errorf("%+v", left)
		}
		return nil
	})
	statuses, waited := 0, 0
	for _, c := range foos.told() {
		if problem := foreignStatus(c.object, wanted[c.object.UID]); problem != "" {
			t.Errorf("Foo of UID %s and generation %d, which wants %d replicas, has a status with %s: %+v",
				c.object.UID, c.object.Generation, wanted[c.object.UID], problem, c.object.Status)
		}
		if c.object.Status.ObservedGeneration >= 0 {
			statuses++
		}
		if belongsToEarlier(c.object) {
			waited++
		}
	}
	made := map[types.UID]types.UID{} // Deployment by Foo
	for _, c := range deployments.told() {
		owner := metav1.GetControllerOf(c.object)
		if got := *c.object.Spec.Replicas; got != wanted[owner.UID] {
			t.Errorf("the Deployment of the Foo of UID %s was given %d replicas, want %d", owner.UID, got, wanted[owner.UID])
		}
		if first, ok := made[owner.UID]; ok && first != c.object.UID {
			t.Errorf("Foo of UID %s was given two Deployments", owner.UID)
		}
		made[owner.UID] = c.object.UID
	}
	t.Logf("%d Foos had %d Deployments; %d changes of theirs had a status, %d that it waits for the one before", len(wanted), len(made), statuses, waited)
}

func belongsToEarlier(foo *samplev1alpha1.Foo) bool {
	return strings.Contains(conditionOf(foo, "Reconciling").Message, "belongs to an earlier Foo")
}

// foreignStatus returns what of a Foo's status cannot have been computed from it, or
// "".
func foreignStatus(foo *samplev1alpha1.Foo, wanted int32) string {
	s := foo.Status
	if s.ObservedGeneration < 0 {
		if len(s.Conditions) > 0 || s.Replicas > 0 || s.Selector != "" {
			return "more than that nobody has looked at it"
		}
		return ""
	}
	if s.ObservedGeneration > foo.Generation {
		return "a generation that is to come"
	}
	if belongsToEarlier(foo) && (s.Replicas > 0 || s.ReadyReplicas > 0 || s.AvailableReplicas > 0 || s.Selector != "") {
		return "what the Deployment of another has"
	}
	for _, c := range s.Conditions {
		var available, of int32
		if _, counts, ok := strings.Cut(c.Message, " has "); ok {
			if _, err := fmt.Sscanf(counts, "%d of %d replicas", &available, &of); err == nil && of != wanted {
				return "a message about other replicas"
			}
		}
		if c.ObservedGeneration != s.ObservedGeneration || c.LastTransitionTime.Before(&foo.CreationTimestamp) {
			return "a condition from before it was created"
		}
	}
	return ""
}

// waitObserved waits until the Foo has a status of the given generation.
func waitObserved(t *testing.T, ns, name string, generation int64) {
	t.Helper()
	waitUntil(t, "the Foo has a status", func(ctx context.Context) error {
		foo, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && foo.Status.ObservedGeneration != generation {
			err = fmt.Errorf("of generation %d", foo.Status.ObservedGeneration)
		}
		return err
	})
}
