// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// obstacle is a Deployment "web" in the way of an object "a", which names it.
type obstacle struct {
	// place puts it there, with or without the object.
	place func(t *testing.T, k kind, ns string)
	// The condition of the object that is then True, its reason, and the beginning of
	// its message, in which KIND and OTHER stand for the kinds.
	condition, reason, message string
	// warning is the reason of the one Warning about the object, empty for none.
	warning string
	// free clears the way.
	free func(t *testing.T, k kind, ns string)
	// kept says that it is not in the way any more although it is still there.
	kept bool
}

var obstacles = map[string]obstacle{
	"a foreign one": {
		place:     placeForeign,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" exists and is not owned by KIND "a": set another spec.deploymentName, or delete the Deployment to have it created anew`,
		free:    func(t *testing.T, k kind, ns string) { kubectl(t, "-n", ns, "delete", "deployment", "web") },
	},
	"another kind's": {
		place:     placeOfConfigMap,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by ConfigMap "keeper": set another spec.deploymentName for KIND "a"`,
		free:    func(t *testing.T, k kind, ns string) { kubectl(t, "-n", ns, "delete", "configmap", "keeper") },
	},
	"another of its kind's, which is then deleted": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a"`,
		free:    func(t *testing.T, k kind, ns string) { kubectl(t, "-n", ns, "delete", k.singular, "first") },
	},
	"another of its kind's, which is then renamed": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by KIND "first": set another spec.deploymentName for KIND "a"`,
		free: func(t *testing.T, k kind, ns string) {
			k.patch(t, ns, "first", `{"spec":{"deploymentName":"elsewhere"}}`)
		},
	},
	"its namesake's of the other kind": {
		place:     placeOfOtherKind,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by OTHER "a": set another spec.deploymentName for KIND "a"`,
		free:    func(t *testing.T, k kind, ns string) { kubectl(t, "-n", ns, "delete", k.other().singular, "a") },
	},
	"a foreign one in deletion": {
		place: func(t *testing.T, k kind, ns string) {
			placeForeign(t, k, ns)
			deleteButHold(t, ns)
		},
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"its own in deletion": {
		place: func(t *testing.T, k kind, ns string) {
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
		free:    func(t *testing.T, k kind, ns string) { kubectl(t, "-n", ns, "delete", "deployment", "web") },
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

// TestObstacles has an object name a Deployment that is not to be touched, and then
// clears the way.
func TestObstacles(t *testing.T) {
	tests := map[string]func(t *testing.T, k kind, ns string){}
	for name, o := range obstacles {
		tests[name] = o.test
	}
	onOneReplica(t, tests)
}

func (o obstacle) test(t *testing.T, k kind, ns string) {
	message := strings.NewReplacer("KIND", k.Kind, "OTHER", k.other().Kind).Replace(o.message)
	o.place(t, k, ns)
	before, callsBefore := inFull(t, ns, "web"), k.deploymentCalls(t, ns)
	if _, err := k.get(t.Context(), ns, "a"); apierrors.IsNotFound(err) {
		k.createNaming(t, ns, "a", "web")
	}
	k.waitMessage(t, ns, "a", o.condition, o.reason, message)

	// Neither a new wish nor anything else that wakes it changes that.
	k.patch(t, ns, "a", `{"spec":{"replicas":2,"image":"nginx:1.29"}}`)
	for i := range 3 {
		if err := k.touch(t.Context(), ns, "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	k.waitMessage(t, ns, "a", o.condition, o.reason, message)
	k.waitIdle(t)
	if diff := cmp.Diff(before, inFull(t, ns, "web")); diff != "" {
		t.Errorf("the Deployment was touched (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(callsBefore, k.deploymentCalls(t, ns)); diff != "" {
		t.Errorf("calls of %s (-before +after):\n%s", k.controller, diff)
	}
	k.wantWarning(t, ns, "a", o.warning)

	uid := deployment(t, ns, "web").UID
	o.free(t, k, ns)
	k.waitReady(t, ns, "a", 2)
	k.wantPods(t, ns, "a", 2)
	k.wantOwned(t, ns, "a", "web")
	now := deployment(t, ns, "web")
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" {
		t.Errorf("the image is %s, want what was wished for meanwhile", image)
	}
	if kept := now.UID == uid; kept != o.kept {
		t.Errorf("it is the same Deployment: %v, want %v", kept, o.kept)
	}
	k.wantPromptly(t, ns, "a", "web")
}

// TestTwoNameOneDeployment has pairs of objects name a Deployment each, at once.
func TestTwoNameOneDeployment(t *testing.T) {
	freeLease(t)
	r := startReplica(t).ready()
	waitLeader(t, "")
	t.Run("pairs", func(t *testing.T) { // returns when all below have ended
		for name, pair := range map[string][2]kind{
			"two Foos":              {foos, foos},
			"two Icecreams":         {icecreams, icecreams},
			"a Foo and an Icecream": {foos, icecreams},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				nameOneDeployment(t, pair[0], pair[1])
			})
		}
	})
	r.stop()
	wantNoDenials(t)
}

func nameOneDeployment(t *testing.T, left, right kind) {
	const pairs = 5
	ns := newNamespace(t)
	type side struct {
		kind
		name string
	}
	sidesOf := func(i int) [2]side {
		return [2]side{{left, fmt.Sprintf("left-%d", i)}, {right, fmt.Sprintf("right-%d", i)}}
	}
	var creating sync.WaitGroup
	for i := range pairs {
		for _, s := range sidesOf(i) {
			creating.Go(func() {
				if _, err := s.tryDeclare(t.Context(), ns, s.name, naming(fmt.Sprintf("web-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	creating.Wait()
	for i := range pairs {
		web, sides := fmt.Sprintf("web-%d", i), sidesOf(i)
		waitDeployment(t, ns, web)
		winner, loser := sides[0], sides[1]
		if metav1.GetControllerOf(deployment(t, ns, web)).Name == loser.name {
			winner, loser = loser, winner
		}
		winner.waitReady(t, ns, winner.name, 1)
		winner.wantOwned(t, ns, winner.name, web)
		loser.waitMessage(t, ns, loser.name, "Stalled", "DeploymentConflict", fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s %q",
			web, winner.Kind, winner.name, loser.Kind, loser.name))
		loser.wantWarning(t, ns, loser.name, "ErrResourceExists")
		winner.wantWarning(t, ns, winner.name, "")
	}

	// There is no fight, however often they are woken.
	calls := func() map[string]int {
		calls := left.deploymentCalls(t, ns)
		if left != right {
			for call, n := range right.deploymentCalls(t, ns) {
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
			if err := s.touch(t.Context(), ns, s.name, "again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, k := range kinds {
		k.waitIdle(t)
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
