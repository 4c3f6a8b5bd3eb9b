// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// obstacle is a Deployment "web" in the way of Foo "a", which names it.
type obstacle struct {
	// place puts it there, with or without the Foo.
	place func(t *testing.T, ns string)
	// The condition of the Foo that is then True, its reason, and the beginning of
	// its message.
	condition, reason, message string
	// warning is the reason of the one Warning about the Foo, empty for none.
	warning string
	// free clears the way.
	free func(t *testing.T, ns string)
	// kept says that it is not in the way any more although it is still there.
	kept bool
}

var obstacles = map[string]obstacle{
	"a foreign one": {
		place:     placeForeign,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" exists and is not owned by Foo "a": set another spec.deploymentName, or delete the Deployment to have it created anew`,
		free:    func(t *testing.T, ns string) { kubectl(t, "-n", ns, "delete", "deployment", "web") },
	},
	"another kind's": {
		place:     placeOfConfigMap,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by ConfigMap "keeper": set another spec.deploymentName for Foo "a"`,
		free:    func(t *testing.T, ns string) { kubectl(t, "-n", ns, "delete", "configmap", "keeper") },
	},
	"another Foo's, which is then deleted": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by Foo "first": set another spec.deploymentName for Foo "a"`,
		free:    func(t *testing.T, ns string) { kubectl(t, "-n", ns, "delete", "foo", "first") },
	},
	"another Foo's, which is then renamed": {
		place:     placeOfFirst,
		condition: "Stalled", reason: "DeploymentConflict", warning: "ErrResourceExists",
		message: `Deployment "web" is owned by Foo "first": set another spec.deploymentName for Foo "a"`,
		free:    func(t *testing.T, ns string) { patchFoo(t, ns, "first", `{"spec":{"deploymentName":"elsewhere"}}`) },
	},
	"a foreign one in deletion": {
		place: func(t *testing.T, ns string) {
			placeForeign(t, ns)
			deleteButHold(t, ns)
		},
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"its own in deletion": {
		place: func(t *testing.T, ns string) {
			placeOwn(t, ns)
			deleteButHold(t, ns)
		},
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" is being deleted; it is created anew once it is gone`,
		free:    release,
	},
	"a dead namesake's": {
		place:     placeOfDeadNamesake,
		condition: "Reconciling", reason: "WaitingForDeletion",
		message: `Deployment "web" belongs to an earlier Foo "a", since deleted; it is created anew once it is gone`,
		free:    func(t *testing.T, ns string) { kubectl(t, "-n", ns, "delete", "deployment", "web") },
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
		message: `Deployment "web" was made for a Foo of this name but is owned by nobody: delete it to have it created anew, or give it to this one: kubectl`,
		free:    followAdvice,
		kept:    true,
	},
}

// TestObstacles has a Foo name a Deployment that is not to be touched, and then
// clears the way.
func TestObstacles(t *testing.T) {
	tests := map[string]func(t *testing.T, ns string){}
	for name, o := range obstacles {
		tests[name] = o.test
	}
	onOneReplica(t, tests)
}

func (o obstacle) test(t *testing.T, ns string) {
	o.place(t, ns)
	before, callsBefore := inFull(t, ns, "web"), deploymentCalls(t, ns)
	if _, err := sample.SamplecontrollerV1alpha1().Foos(ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		createFooNaming(t, ns, "a", "web")
	}
	waitMessage(t, ns, "a", o.condition, o.reason, o.message)

	// Neither a new wish nor anything else that wakes it changes that.
	patchFoo(t, ns, "a", `{"spec":{"replicas":2,"image":"nginx:1.29"}}`)
	for i := range 3 {
		if err := touch(t.Context(), ns, "a", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	waitMessage(t, ns, "a", o.condition, o.reason, o.message)
	waitIdle(t)
	if diff := cmp.Diff(before, inFull(t, ns, "web")); diff != "" {
		t.Errorf("the Deployment was touched (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(callsBefore, deploymentCalls(t, ns)); diff != "" {
		t.Errorf("calls of foo-controller (-before +after):\n%s", diff)
	}
	wantWarning(t, ns, "a", o.warning)

	uid := deployment(t, ns, "web").UID
	o.free(t, ns)
	waitReady(t, ns, "a", 2)
	wantPods(t, ns, "a", 2)
	wantOwned(t, ns, "a", "web")
	now := deployment(t, ns, "web")
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "nginx:1.29" {
		t.Errorf("the image is %s, want what was wished for meanwhile", image)
	}
	if kept := now.UID == uid; kept != o.kept {
		t.Errorf("it is the same Deployment: %v, want %v", kept, o.kept)
	}
	wantPromptly(t, ns, "a", "web")
}

// TestTwoFoosNameOneDeployment has pairs of Foos name a Deployment each, at once.
func TestTwoFoosNameOneDeployment(t *testing.T) {
	ns := newNamespace(t)
	freeLease(t)
	r := startReplica(t).ready()
	waitLeader(t, "")
	const pairs = 5
	var creating sync.WaitGroup
	for i := range pairs {
		for _, side := range []string{"left", "right"} {
			creating.Go(func() {
				foo := fooNaming(fmt.Sprintf("%s-%d", side, i), fmt.Sprintf("web-%d", i))
				if _, err := sample.SamplecontrollerV1alpha1().Foos(ns).Create(t.Context(), foo, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	creating.Wait()
	for i := range pairs {
		web := fmt.Sprintf("web-%d", i)
		waitDeployment(t, ns, web)
		winner, loser := fmt.Sprintf("left-%d", i), fmt.Sprintf("right-%d", i)
		if metav1.GetControllerOf(deployment(t, ns, web)).Name == loser {
			winner, loser = loser, winner
		}
		waitReady(t, ns, winner, 1)
		wantOwned(t, ns, winner, web)
		waitMessage(t, ns, loser, "Stalled", "DeploymentConflict",
			fmt.Sprintf("Deployment %q is owned by Foo %q: set another spec.deploymentName for Foo %q", web, winner, loser))
		wantWarning(t, ns, loser, "ErrResourceExists")
		wantWarning(t, ns, winner, "")
	}

	// There is no fight, however often they are woken.
	before, callsBefore := map[string]string{}, deploymentCalls(t, ns)
	for i := range pairs {
		web := fmt.Sprintf("web-%d", i)
		before[web] = inFull(t, ns, web)
	}
	if created := callsBefore["create deployments"]; created < pairs || created > 2*pairs {
		t.Errorf("%d attempts to create %d Deployments", created, pairs)
	}
	for i := range pairs {
		for _, side := range []string{"left", "right"} {
			if err := touch(t.Context(), ns, fmt.Sprintf("%s-%d", side, i), "again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitIdle(t)
	if diff := cmp.Diff(callsBefore, deploymentCalls(t, ns)); diff != "" {
		t.Errorf("calls of foo-controller (-before +after):\n%s", diff)
	}
	for web, want := range before {
		if diff := cmp.Diff(want, inFull(t, ns, web)); diff != "" {
			t.Errorf("Deployment %s was touched (-before +after):\n%s", web, diff)
		}
	}
	r.stop()
	wantNoDenials(t)
}
