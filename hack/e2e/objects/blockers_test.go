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

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// blocker is a Deployment "web" in the way of an object "a", which names it.
type blocker struct {
	// place puts it there, with or without the object.
	place func(t *testing.T, k framework.Kind, ns string)
	// The condition of the object that is then True, its reason, and the beginning of
	// its message, in which KIND and OTHER stand for the kinds.
	condition, reason, message string
	// warning is the reason of the one Warning about the object, empty for none.
	warning string
	// free clears the way.
	free func(t *testing.T, k framework.Kind, ns string)
	// kept says that it is not in the way any more although it is still there.
	kept bool
}

var blockers = map[string]blocker{
	"a foreign one": {
		place:     placeForeign,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" exists and is not owned by KIND "a": set another spec.deploymentName, or delete the Deployment to have it created anew`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", "deployment", "web")
		},
	},
	"another kind's": {
		place:     placeOfConfigMap,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by ConfigMap "keeper": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", "configmap", "keeper")
		},
	},
	"another of its kind's, which is then deleted": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", k.Singular, "first")
		},
	},
	"another of its kind's, which is then renamed": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			k.Patch(t, ns, "first", `{"spec":{"deploymentName":"elsewhere"}}`)
		},
	},
	"its namesake's of the other kind": {
		place:     placeOfOtherKind,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by OTHER "a": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", k.Other().Singular, "a")
		},
	},
	"a foreign one in deletion": {
		place: func(t *testing.T, k framework.Kind, ns string) {
			placeForeign(t, k, ns)
			deleteButHold(t, ns)
		},
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"its own in deletion": {
		place: func(t *testing.T, k framework.Kind, ns string) {
			placeOwn(t, k, ns)
			deleteButHold(t, ns)
		},
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"a dead namesake's": {
		place:     placeOfDeadNamesake,
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" belongs to an earlier KIND "a", since deleted; it is created anew once it is gone`,
		free: func(t *testing.T, k framework.Kind, ns string) {
			framework.Kubectl(t, "-n", ns, "delete", "deployment", "web")
		},
	},
	"a dead namesake's in deletion": {
		place:     placeOfDeadNamesakeInDeletion,
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"its own, whose owner reference was removed": {
		place:     placeDisowned,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" was made for the KIND of this name but is owned by nobody: delete it to have it created anew, or give it to this one: kubectl`,
		free:    followAdvice,
		kept:    true,
	},
}

// TestBlockers has an object name a Deployment that is not to be touched, and then
// clears the way.
func TestBlockers(t *testing.T) {
	tests := map[string]func(t *testing.T, k framework.Kind, ns string){}
	for name, o := range blockers {
		tests[name] = o.test
	}
	onOneReplica(t, tests)
}

func (o blocker) test(t *testing.T, k framework.Kind, ns string) {
	message := strings.NewReplacer("KIND", k.Kind, "OTHER", k.Other().Kind).Replace(o.message)
	o.place(t, k, ns)
	before, callsBefore := inFull(t, ns, "web"), deploymentCalls(t, k, ns)
	if _, err := k.Get(t.Context(), ns, "a"); apierrors.IsNotFound(err) {
		k.CreateNaming(t, ns, "a", "web")
	}
	k.WaitMessage(t, ns, "a", o.condition, o.reason, message)

	// Neither a new wish nor anything else that wakes it changes that.
	k.Patch(t, ns, "a", `{"spec":{"replicas":2,"image":"nginx:1.29"}}`)
	for i := range 3 {
		if err := k.Touch(t.Context(), ns, "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	k.WaitMessage(t, ns, "a", o.condition, o.reason, message)
	k.WaitIdle(t)
	if diff := cmp.Diff(before, inFull(t, ns, "web")); diff != "" {
		t.Errorf("the Deployment was touched (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(callsBefore, deploymentCalls(t, k, ns)); diff != "" {
		t.Errorf("calls of %s (-before +after):\n%s", k.Controller, diff)
	}
	wantWarning(t, k, ns, "a", o.warning)

	uid := framework.Deployment(t, ns, "web").UID
	o.free(t, k, ns)
	k.WaitReady(t, ns, "a", 2)
	k.WantPods(t, ns, "a", 2)
	wantOwned(t, k, ns, "a", "web")
	now := framework.Deployment(t, ns, "web")
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" {
		t.Errorf("the image is %s, want what was wished for meanwhile", image)
	}
	if kept := now.UID == uid; kept != o.kept {
		t.Errorf("it is the same Deployment: %v, want %v", kept, o.kept)
	}
	wantPromptly(t, k, ns, "a", "web")
}

// TestDeploymentNamedTwice has pairs of objects name a Deployment each, at once.
func TestDeploymentNamedTwice(t *testing.T) {
	framework.FreeLease(t)
	r := framework.StartReplica(t).Ready()
	framework.WaitLeader(t, "")
	t.Run("pairs", func(t *testing.T) { // returns when all below have ended
		for name, pair := range map[string][2]framework.Kind{
			"two Foos":              {framework.Foos, framework.Foos},
			"two Icecreams":         {framework.Icecreams, framework.Icecreams},
			"a Foo and an Icecream": {framework.Foos, framework.Icecreams},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				nameOneDeployment(t, pair[0], pair[1])
			})
		}
	})
	r.Stop()
	framework.WantNoDenials(t)
}

func nameOneDeployment(t *testing.T, left, right framework.Kind) {
	const pairs = 5
	ns := framework.NewNamespace(t)
	type side struct {
		framework.Kind
		name string
	}
	sidesOf := func(i int) [2]side {
		return [2]side{{left, fmt.Sprintf("left-%d", i)}, {right, fmt.Sprintf("right-%d", i)}}
	}
	var creating sync.WaitGroup
	for i := range pairs {
		for _, s := range sidesOf(i) {
			creating.Go(func() {
				if _, err := s.TryDeclare(t.Context(), ns, s.name, framework.Naming(fmt.Sprintf("web-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	creating.Wait()
	for i := range pairs {
		web, sides := fmt.Sprintf("web-%d", i), sidesOf(i)
		framework.WaitDeployment(t, ns, web)
		winner, loser := sides[0], sides[1]
		if metav1.GetControllerOf(framework.Deployment(t, ns, web)).Name == loser.name {
			winner, loser = loser, winner
		}
		winner.WaitReady(t, ns, winner.name, 1)
		wantOwned(t, winner.Kind, ns, winner.name, web)
		loser.WaitMessage(t, ns, loser.name, "Stalled", "DeploymentConflict", fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s %q",
			web, winner.Kind.Kind, winner.name, loser.Kind.Kind, loser.name))
		wantWarning(t, loser.Kind, ns, loser.name, "ErrResourceExists")
		wantWarning(t, winner.Kind, ns, winner.name, "")
	}

	// There is no fight, however often they are woken.
	calls := func() map[string]int {
		calls := deploymentCalls(t, left, ns)
		if left != right {
			for call, n := range deploymentCalls(t, right, ns) {
				calls[call] += n
			}
		}
		return calls
	}
	before, callsBefore := map[string]string{}, calls()
	for i := range pairs {
		web := fmt.Sprintf("web-%d", i)
		before[web] = inFull(t, ns, web)
	}
	if created := callsBefore["create deployments"]; created < pairs || created > 2*pairs {
		t.Errorf("%d attempts to create %d Deployments", created, pairs)
	}
	for i := range pairs {
		for _, s := range sidesOf(i) {
			if err := s.Touch(t.Context(), ns, s.name, "again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, k := range framework.Kinds {
		k.WaitIdle(t)
	}
	if diff := cmp.Diff(callsBefore, calls()); diff != "" {
		t.Errorf("calls of the controllers (-before +after):\n%s", diff)
	}
	for web, want := range before {
		if diff := cmp.Diff(want, inFull(t, ns, web)); diff != "" {
			t.Errorf("Deployment %s was touched (-before +after):\n%s", web, diff)
		}
	}
}
