// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// blocker is a Deployment "web" that blocks an object "a" with that deploymentName.
type blocker struct {
	// place creates the Deployment, with or without the object.
	place func(t *testing.T, k framework.Kind, ns string)
	// reason is why the object is Stalled, DeploymentConflict if empty.
	reason string
	// message is the start of the object's message. KIND and OTHER stand for the kinds.
	message string
	// free removes the blocker. If it is nil, the command in the message does.
	free func(t *testing.T, k framework.Kind, ns string)
	// kept means that the Deployment remains, but no longer blocks.
	kept bool
}

// beingDeleted is what the object says after a minute in which nothing removed the finalizer.
const beingDeleted = `Deployment "web" is being deleted; it will be created again once that one is gone; ` +
	`finalizers ["example.com/hold"] hold it: wait for their controllers or, if those are gone, run kubectl`

var blockers = map[string]blocker{
	"a foreign Deployment": {
		place: placeForeign, free: deleteWeb,
		message: `Deployment "web" exists and is not owned by KIND "a": set another spec.deploymentName, ` +
			`or make this KIND its owner, which then keeps its replicas and image as declared: kubectl`,
	},
	"owned by another object of its kind, which is then deleted": {
		place:   placeOfFirst,
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", k.Singular, "first")
		},
	},
	"owned by another object of its kind, which is then renamed": {
		place: placeOfFirst,
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a". ` +
			`If that KIND names another Deployment now, you may instead delete this one, with its Pods: kubectl`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			k.Patch(t, ns, "first", `{"spec":{"deploymentName":"elsewhere"}}`)
			k.WaitReady(t, ns, "first", 1)
			followAdvice(t, k, ns, "a")
		},
	},
	"owned by an object of the other kind with its name": {
		place:   placeOfOtherKind,
		message: `Deployment "web" is owned by OTHER "a": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", k.Other().Singular, "a")
		},
	},
	"a foreign Deployment in deletion": {
		place: inDeletion(placeForeign), reason: "DeletionBlocked", message: beingDeleted,
	},
	"its own Deployment in deletion": {
		place: inDeletion(placeOwn), reason: "DeletionBlocked", message: beingDeleted,
	},
	"owned by a deleted object of its name": {
		place: placeOfDeadNamesake, reason: "DeletionBlocked",
		message: `Deployment "web" belongs to an earlier KIND "a", since deleted; ` +
			`it will be created again once that one is gone; the garbage collector has not deleted it: run kubectl`,
	},
	"its own Deployment, after removal of the owner reference": {
		place: placeDisowned, free: adopt, kept: true,
		message: `Deployment "web" was created for the KIND of this name but has no controller owner: ` +
			`set another spec.deploymentName, or make this KIND its owner, which then keeps its replicas and image as declared: kubectl`,
	},
}

// TestBlockers creates an object whose deploymentName is a Deployment that it must not touch,
// and then removes the blocker.
func TestBlockers(t *testing.T) {
	tests := map[string]func(t *testing.T, k framework.Kind, ns string){}
	for name, o := range blockers {
		tests[name] = o.test
	}
	onOneReplica(t, tests)
}

func (o blocker) test(t *testing.T, k framework.Kind, ns string) {
	message := strings.NewReplacer("KIND", k.Kind, "OTHER", k.Other().Kind).Replace(o.message)
	reason, warning := o.reason, o.reason
	if reason == "" {
		reason, warning = "DeploymentConflict", "ErrResourceExists"
	}
	o.place(t, k, ns)
	before, callsBefore := inFull(t, ns, "web"), deploymentCalls(t, k, ns)
	if _, err := k.Get(t.Context(), ns, "a"); apierrors.IsNotFound(err) {
		k.CreateNaming(t, ns, "a", "web")
	}
	k.WaitMessage(t, ns, "a", "Stalled", reason, message)

	// Neither a change of the spec nor another reason to sync changes that.
	k.Patch(t, ns, "a", `{"spec":{"replicas":2,"image":"nginx:1.29"}}`)
	for i := range 3 {
		if err := k.Touch(t.Context(), ns, "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	k.WaitMessage(t, ns, "a", "Stalled", reason, message)
	k.WaitIdle(t)
	if diff := cmp.Diff(before, inFull(t, ns, "web")); diff != "" {
		t.Errorf("the Deployment was touched (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(callsBefore, deploymentCalls(t, k, ns)); diff != "" {
		t.Errorf("calls of %s (-before +after):\n%s", k.Controller, diff)
	}
	wantWarning(t, k, ns, "a", warning)

	uid := framework.Deployment(t, ns, "web").UID
	if o.free == nil {
		followAdvice(t, k, ns, "a")
	} else {
		o.free(t, k, ns)
	}
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	wantOwned(t, k, ns, "a", "web")
	now := framework.Deployment(t, ns, "web")
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" {
		t.Errorf("image is %s, want the one set while the object was blocked", image)
	}
	if kept := now.UID == uid; kept != o.kept {
		t.Errorf("same Deployment: %v, want %v", kept, o.kept)
	}
}

// TestDeploymentNamedTwice creates pairs of objects, of one or of both kinds, that name the
// same Deployment at the same time.
func TestDeploymentNamedTwice(t *testing.T) {
	tests := map[string]func(t *testing.T, k framework.Kind, ns string){
		"by two objects of a kind":   func(t *testing.T, k framework.Kind, ns string) { nameOneDeployment(t, ns, k, k) },
		"by one object of each kind": func(t *testing.T, k framework.Kind, ns string) { nameOneDeployment(t, ns, k, k.Other()) },
	}
	onOneReplica(t, tests)
}

func nameOneDeployment(t *testing.T, ns string, left, right framework.Kind) {
	const pairs = 5
	var creating sync.WaitGroup
	for i := range pairs {
		for side, k := range map[string]framework.Kind{"left": left, "right": right} {
			creating.Go(func() {
				if _, err := k.TryDeclare(t.Context(), ns, fmt.Sprintf("%s-%d", side, i),
					framework.Naming(fmt.Sprintf("web-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	creating.Wait()
	for i := range pairs {
		web := fmt.Sprintf("web-%d", i)
		framework.WaitDeployment(t, ns, web)
		winner, winning, loser, losing := left, fmt.Sprintf("left-%d", i), right, fmt.Sprintf("right-%d", i)
		if metav1.GetControllerOf(framework.Deployment(t, ns, web)).Name == losing {
			winner, winning, loser, losing = loser, losing, winner, winning
		}
		winner.WaitReady(t, ns, winning, 1)
		wantOwned(t, winner, ns, winning, web)
		loser.WaitMessage(t, ns, losing, "Stalled", "DeploymentConflict", fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s %q",
			web, winner.Kind, winning, loser.Kind, losing))
		wantWarning(t, loser, ns, losing, "ErrResourceExists")
		wantWarning(t, winner, ns, winning, "")
	}
	calls := deploymentCalls(t, left, ns)
	if left != right {
		for call, n := range deploymentCalls(t, right, ns) {
			calls[call] += n
		}
	}
	// The controller of each may try once before it sees the other's Deployment.
	if created := calls["create deployments"]; len(calls) != 1 || created < pairs || created > 2*pairs {
		t.Errorf("calls for %d Deployments: %v, want between one and two attempts to create each", pairs, calls)
	}
}
