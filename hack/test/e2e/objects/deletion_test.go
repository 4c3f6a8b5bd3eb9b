// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestDeletion(t *testing.T) {
	onOneReplica(t, map[string]func(t *testing.T, k framework.Kind, ns string){
		"in background":     deleteInBackground,
		"in foreground":     deleteInForeground,
		"leaving an orphan": deleteLeavingAnOrphan,
		"and recreation":    recreate,
	})
}

func deleteInBackground(t *testing.T, k framework.Kind, ns string) {
	before := serveTwo(t, k, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=background")
	waitDeployments(t, ns)
	k.WantPods(t, ns, "a", 0)
	wantNothingNew(t, k, ns, before)
}

// deleteInForeground deletes the Deployment while the object, which is being deleted, still
// exists.
func deleteInForeground(t *testing.T, k framework.Kind, ns string) {
	before := serveTwo(t, k, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=foreground") // returns when it is gone
	if _, err := framework.Kube().AppsV1().Deployments(ns).Get(t.Context(), "a",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object was gone before its Deployment: %v", err)
	}
	k.WantPods(t, ns, "a", 0)
	wantOnlyStatuses(t, k, ns, before)
}

func deleteLeavingAnOrphan(t *testing.T, k framework.Kind, ns string) {
	writesBefore := serveTwo(t, k, ns)
	before := framework.TakeSnapshot(t, ns)
	framework.Kubectl(t, "-n", ns, "delete", k.Singular, "a", "--cascade=orphan")
	orphaned := before.Deployments["a"]
	orphaned.OwnerReferences = nil
	before.Deployments["a"] = orphaned
	wantOnlyStatuses(t, k, ns, writesBefore)
	framework.WantSameSnapshot(t, "an orphaning deletion", ns, before)

	// A new object of the same name does not adopt the Deployment, but says how to let it.
	k.CreateNaming(t, ns, "a", "a")
	k.WaitMessage(t, ns, "a", "Stalled", "DeploymentConflict", fmt.Sprintf(`Deployment "a" was created for the %s of this name but has no controller owner`, k.Kind))
	framework.WantSameSnapshot(t, "the new object", ns, before)
}

// serveTwo creates an object "a" with two replicas, waits until nothing changes any more, and
// returns the writes of its controller.
func serveTwo(t *testing.T, k framework.Kind, ns string) map[string]int {
	t.Helper()
	k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2)})
	k.WaitReady(t, ns, "a", 2)
	k.WaitPodsReported(t, ns, "a", 2)
	k.WaitIdle(t)
	return k.Writes(t, ns, accepted)
}

// wantOnlyStatuses is wantNothingNew for an object that a finalizer kept in deletion: its
// status reported the Deployment until the object was gone.
func wantOnlyStatuses(t *testing.T, k framework.Kind, ns string, before map[string]int) {
	t.Helper()
	status := "patch " + k.Resource + "/status"
	before[status] = k.Writes(t, ns, accepted)[status]
	wantNothingNew(t, k, ns, before)
}

// wantNothingNew checks that the controller, once it is idle, has written nothing more. One
// rejected attempt is allowed, because the deletions of the Deployment and of the object
// arrive on different watches.
func wantNothingNew(t *testing.T, k framework.Kind, ns string, before map[string]int) {
	t.Helper()
	k.WaitIdle(t)
	if diff := cmp.Diff(before, k.Writes(t, ns, accepted)); diff != "" {
		t.Errorf("calls of %s (-before +after):\n%s", k.Controller, diff)
	}
	for call, n := range k.Writes(t, ns, func(event auditv1.Event) bool { return !accepted(event) }) {
		if call != "patch "+k.Resource+"/status" || n > 1 {
			t.Errorf("%d rejected calls %s of %s, want at most one, of a status", n, call, k.Controller)
		}
	}
}

func accepted(event auditv1.Event) bool { return event.ResponseStatus.Code < 300 }

// recreate deletes an object and immediately recreates it, at different points in the life of
// the first. Each object wants other replicas than the previous one, and gets its own
// Deployment.
func recreate(t *testing.T, k framework.Kind, ns string) {
	const times = 8
	deployments := framework.Record[*appsv1.Deployment](t, framework.Kube().AppsV1().Deployments(ns).Watch)
	wanted := map[types.UID]int32{}
	for i := range times + 1 {
		replicas := int32(1 + i%4)
		object := k.Declare(t, ns, "a", samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: &replicas})
		wanted[object.UID] = replicas
		switch i % 4 {
		case 0:
			k.WaitReady(t, ns, "a", int(replicas))
		case 1:
			k.WaitObserved(t, ns, "a", 1)
		case 2: // in a generation that the next object has not reached yet
			k.Patch(t, ns, "a", `{"spec":{"image":"nginx:1.29"}}`)
			k.WaitObserved(t, ns, "a", 2)
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
	made := map[types.UID]types.UID{} // Deployment by owner
	for _, c := range deployments.Changes() {
		owner := metav1.GetControllerOf(c.Object)
		if got := *c.Object.Spec.Replicas; got != wanted[owner.UID] {
			t.Errorf("the Deployment of the %s of UID %s got %d replicas, want %d", k.Kind, owner.UID, got, wanted[owner.UID])
		}
		if first, ok := made[owner.UID]; ok && first != c.Object.UID {
			t.Errorf("%s of UID %s got two Deployments", k.Kind, owner.UID)
		}
		made[owner.UID] = c.Object.UID
	}
}
