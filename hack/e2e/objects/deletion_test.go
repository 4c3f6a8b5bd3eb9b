// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
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

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

func TestDeletion(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"in background":            deleteInBackground,
		"in foreground":            deleteInForeground,
		"leaving an orphan":        deleteLeavingAnOrphan,
		"held by a finalizer":      deleteHeld,
		"and creation of the name": recreate,
	})
}

func deleteInBackground(t *testing.T, k framework.Kind, ns string) {
	before := serveTwo(t, k, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=background")
	waitDeployments(t, ns)
	k.WantPods(t, ns, "a", 0)
	k.WaitIdle(t)
	wantNothingNew(t, k, ns, before)
}

func deleteInForeground(t *testing.T, k framework.Kind, ns string) {
	before := serveTwo(t, k, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=foreground") // returns when it is gone
	if _, err := framework.Kube().AppsV1().Deployments(ns).Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object was gone before its Deployment: %v", err)
	}
	k.WantPods(t, ns, "a", 0)
	k.WaitIdle(t)
	wantNothingNew(t, k, ns, before)
}

func deleteLeavingAnOrphan(t *testing.T, k framework.Kind, ns string) {
	writesBefore := serveTwo(t, k, ns)
	before := framework.TakeSnapshot(t, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=orphan")
	k.WaitIdle(t)
	orphaned := before.Deployments["a"]
	orphaned.OwnerReferences = nil
	before.Deployments["a"] = orphaned
	framework.WantSameSnapshot(t, "an orphaning deletion", ns, before)
	wantNothingNew(t, k, ns, writesBefore)

	// One of the name does not take it for its own, but says how to give it to it.
	k.CreateNaming(t, ns, "a", "a")
	k.WaitMessage(t, ns, "a", "Stalled", "DeploymentConflict", fmt.Sprintf(`Deployment "a" was made for the %s of this name but is owned by nobody`, k.Kind))
	framework.WantSameSnapshot(t, "the new object", ns, before)
}

// deleteHeld wakes an object that is being deleted in every way there is.
func deleteHeld(t *testing.T, k framework.Kind, ns string) {
	before := serveTwo(t, k, ns)
	k.Patch(t, ns, "a", fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, hold))
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--wait=false")
	for _, wake := range []struct {
		what string
		do   func()
	}{
		{"it is touched", func() {
			if err := k.Touch(t.Context(), ns, "a", "again"); err != nil {
				t.Fatal(err)
			}
		}},
		{"it wants other replicas and another image", func() { k.Patch(t, ns, "a", `{"spec":{"replicas":3,"image":"nginx:1.29"}}`) }},
		{"its Deployment is scaled", func() { framework.Kubectl(t, "-n", ns, "scale", "deployment/a", "--replicas=1") }},
		{"its Deployment is deleted", func() { framework.Kubectl(t, "-n", ns, "delete", "deployment", "a") }},
		{"it is renamed", func() { k.Patch(t, ns, "a", `{"spec":{"deploymentName":"b"}}`) }},
	} {
		wake.do()
		k.WaitIdle(t)
		if diff := cmp.Diff(before, k.Writes(t, ns, accepted)); diff != "" {
			t.Fatalf("%s: calls of %s (-before +after):\n%s", wake.what, k.Controller, diff)
		}
	}
	k.Patch(t, ns, "a", `{"metadata":{"finalizers":null}}`)
	waitDeployments(t, ns)
	k.WaitIdle(t)
	wantNothingNew(t, k, ns, before)
}

// serveTwo makes an object "a" with two replicas, waits until all is at rest, and
// returns what its controller has written.
func serveTwo(t *testing.T, k framework.Kind, ns string) map[string]int {
	t.Helper()
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	k.WaitReady(t, ns, "a", 2)
	k.WaitPodsReported(t, ns, "a", 2)
	k.WaitIdle(t)
	return k.Writes(t, ns, accepted)
}

// wantNothingNew checks that the controller has written nothing more. One attempt may
// have been refused: it is told by one watch that the Deployment goes, and by another
// that the object does.
func wantNothingNew(t *testing.T, k framework.Kind, ns string, before map[string]int) {
	t.Helper()
	if diff := cmp.Diff(before, k.Writes(t, ns, accepted)); diff != "" {
		t.Errorf("calls of %s (-before +after):\n%s", k.Controller, diff)
	}
	for call, n := range k.Writes(t, ns, func(event auditv1.Event) bool { return !accepted(event) }) {
		if call != "patch "+k.Resource+"/status" || n > 1 {
			t.Errorf("%d refused calls %s of %s, want at most one of a status", n, call, k.Controller)
		}
	}
}

func accepted(event auditv1.Event) bool { return event.ResponseStatus.Code < 300 }

// recreate deletes an object and creates another of its name at once, at moments when
// more or less is still to be written about the dead one. Each wants other replicas
// than the one before, of which its status must speak.
func recreate(t *testing.T, k framework.Kind, ns string) {
	const times = 20
	objects := framework.Record[*samplev1alpha1.Foo](t, k.Watch(ns))
	deployments := framework.Record[*appsv1.Deployment](t, framework.Kube().AppsV1().Deployments(ns).Watch)
	wanted := map[types.UID]int32{}
	for i := range times + 1 {
		replicas := int32(1 + i%4)
		object := k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: &replicas})
		wanted[object.UID] = replicas
		switch {
		case i%4 == 0: // at rest
			k.WaitReady(t, ns, "a", int(replicas))
		case i%4 == 1: // before or while it waits for the Deployment of the last
		case i%4 == 2: // in a generation that the next one has not yet
			k.Patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
			k.WaitObserved(t, ns, "a", 2)
		case i%4 == 3: // in the midst of many statuses
			k.WaitObserved(t, ns, "a", 1)
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
		}
		if i == times {
			break
		}
		background := metav1.DeletePropagationBackground
		if err := k.In(ns).Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
	}
	wantOnly(t, k, ns, "a", "a")
	k.WantPods(t, ns, "a", 1+times%4)

	objects.WaitFor(t, "the watch has told all", func(left []*samplev1alpha1.Foo) error {
		if len(left) != 1 || !meta.IsStatusConditionTrue(left[0].Status.Conditions, "Ready") {
			return fmt.Errorf("%+v", left)
		}
		return nil
	})
	statuses, waited := 0, 0
	for _, c := range objects.Changes() {
		if problem := foreignStatus(c.Object, wanted[c.Object.UID]); problem != "" {
			t.Errorf("%s of UID %s and generation %d, which wants %d replicas, has a status with %s: %+v",
				k.Kind, c.Object.UID, c.Object.Generation, wanted[c.Object.UID], problem, c.Object.Status)
		}
		if c.Object.Status.ObservedGeneration >= 0 {
			statuses++
		}
		if belongsToEarlier(c.Object) {
			waited++
		}
	}
	made := map[types.UID]types.UID{} // Deployment by owner
	for _, c := range deployments.Changes() {
		owner := metav1.GetControllerOf(c.Object)
		if got := *c.Object.Spec.Replicas; got != wanted[owner.UID] {
			t.Errorf("the Deployment of the %s of UID %s was given %d replicas, want %d", k.Kind, owner.UID, got, wanted[owner.UID])
		}
		if first, ok := made[owner.UID]; ok && first != c.Object.UID {
			t.Errorf("%s of UID %s was given two Deployments", k.Kind, owner.UID)
		}
		made[owner.UID] = c.Object.UID
	}
	t.Logf("%d %ss had %d Deployments; %d changes of theirs had a status, %d that it waits for the one before", len(wanted), k.Kind, len(made), statuses, waited)
}

func belongsToEarlier(object *samplev1alpha1.Foo) bool {
	return strings.Contains(framework.ConditionOf(object, "Reconciling").Message, "belongs to an earlier ")
}

// foreignStatus returns what of an object's status cannot have been computed from it, or
// "".
func foreignStatus(object *samplev1alpha1.Foo, wanted int32) string {
	s := object.Status
	if s.ObservedGeneration < 0 {
		if len(s.Conditions) > 0 || s.Replicas > 0 || s.Selector != "" {
			return "more than that nobody has looked at it"
		}
		return ""
	}
	if s.ObservedGeneration > object.Generation {
		return "a generation that is to come"
	}
	if belongsToEarlier(object) && (s.Replicas > 0 || s.ReadyReplicas > 0 || s.AvailableReplicas > 0 || s.Selector != "") {
		return "what the Deployment of another has"
	}
	for _, c := range s.Conditions {
		var available, of int32
		if _, counts, ok := strings.Cut(c.Message, " has "); ok {
			if _, err := fmt.Sscanf(counts, "%d of %d replicas", &available, &of); err == nil && of != wanted {
				return "a message about other replicas"
			}
		}
		if c.ObservedGeneration != s.ObservedGeneration || c.LastTransitionTime.Before(&object.CreationTimestamp) {
			return "a condition from before it was created"
		}
	}
	return ""
}
