// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestARenameCarriesTheReplicasOver(t *testing.T) {
	newest := deployment(named("old-2"), createdAt(2), withReplicas(ptr.To[int32](7)))
	oldest := deployment(named("old-1"), createdAt(1), withReplicas(ptr.To[int32](4)))
	for name, test := range map[string]struct {
		wanted *int32
		want   int32
	}{
		"replicas absent: as many as before": {nil, 7},
		"replicas set":                       {ptr.To[int32](3), 3},
	} {
		t.Run(name, func(t *testing.T) {
			created := Decide(parent(wantReplicas(test.wanted)), View{Former: list(newest, oldest)}).Create
			if created == nil || created.Spec.Replicas == nil || *created.Spec.Replicas != test.want {
				t.Errorf("created %+v, want %d replicas", created, test.want)
			}
		})
	}
}

func TestAFormerDeploymentGoesWhenItMay(t *testing.T) {
	serving := deployment(named("old"))
	idle := deployment(named("idle"), withStatus(3, 3, 0))
	going := deployment(named("going"), deleted)
	for name, test := range map[string]struct {
		live   *appsv1.Deployment
		former []*appsv1.Deployment
		want   string
	}{
		"none":                                   {deployment(), nil, ""},
		"the new one serves":                     {deployment(), list(serving), "old"},
		"the new one does not yet":               {deployment(withStatus(3, 3, 1)), list(serving), ""},
		"the old one does not serve":             {deployment(withStatus(3, 3, 0)), list(idle), "idle"},
		"one serves and one does not":            {deployment(withStatus(3, 3, 0)), list(serving, idle), "idle"},
		"it is going":                            {deployment(), list(going), ""},
		"the new name is taken":                  {deployment(withOwner(nil)), list(serving, idle), ""},
		"the new one is to be scaled first":      {deployment(withReplicas(ptr.To[int32](9))), list(idle), ""},
		"there is no new one yet: create first":  {nil, list(idle), ""},
		"the earlier name's Deployment is going": {deployment(deleted), list(serving), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if d := Decide(parent(), View{Live: test.live, Former: test.former}).Delete; d != nil {
				got = d.Name
			}
			if got != test.want {
				t.Errorf("deletes %q, want %q", got, test.want)
			}
		})
	}
}

func TestKeepDeletesOnlyTheFormerDeploymentItLookedAt(t *testing.T) {
	former := deployment(named("old"))
	foreign := deployment(named("foreign"), withOwner(owner("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-other")))
	elsewhere := deployment(named("elsewhere"), func(d *appsv1.Deployment) { d.Namespace = "elsewhere" })
	all := list(deployment(), former, foreign, elsewhere)
	keeper, client := newTestKeeper(t, all, all)
	state, err := keeper.Keep(t.Context(), parent())
	if err != nil || state.Deployment == nil || state.Deployment.Name != "web" {
		t.Fatalf("Keep() = %+v, %v, want the Deployment web", state, err)
	}
	if len(client.Actions()) != 2 || client.Actions()[0].GetVerb() != "list" {
		t.Fatalf("actions = %v, want a look at the present Deployment and one delete", client.Actions())
	}
	got, ok := client.Actions()[1].(clienttesting.DeleteActionImpl)
	if !ok || got.Name != "old" || got.Namespace != "default" {
		t.Fatalf("action = %v, want the Deployment old deleted", client.Actions()[1])
	}
	p := got.DeleteOptions.Preconditions
	if p == nil || *p.UID != former.UID || *p.ResourceVersion != former.ResourceVersion {
		t.Errorf("preconditions = %+v, want UID and resourceVersion of what was looked at", p)
	}
}

// A former Deployment stays for as long as a finalizer holds it.
func TestKeepReportsAFormerDeploymentUntilItIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		former *appsv1.Deployment
		want   string
	}{
		"being deleted by us": {deployment(named("old")), "old"},
		"held":                {deployment(named("old"), deleted), "old"},
		"gone":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := list(deployment(), test.former)
			keeper, _ := newTestKeeper(t, all, all)
			state, err := keeper.Keep(t.Context(), parent())
			got := ""
			if state.Former != nil {
				got = state.Former.Name
			}
			if err != nil || got != test.want {
				t.Errorf("Keep() = %+v, %v, want the former Deployment %q", state, err, test.want)
			}
		})
	}
}

func TestKeepTakesAFormerDeploymentThatIsGoneForALateCache(t *testing.T) {
	keeper, _ := newTestKeeper(t, list(deployment(), deployment(named("old"))), list(deployment()))
	if _, err := keeper.Keep(t.Context(), parent()); !apierrors.IsConflict(err) {
		t.Errorf("error = %v, want a conflict", err)
	}
}

// A parent that is renamed to and fro may find its cache to be late: the Deployment
// that it relies on has just been deleted, for the one that it is about to delete.
func TestKeepDeletesWhatServesOnlyForWhatReallyDoes(t *testing.T) {
	old := deployment(named("old"))
	idle := deployment(named("idle"), withStatus(3, 3, 0))
	changed := deployment(func(d *appsv1.Deployment) { d.ResourceVersion = "8" })
	anew := deployment(func(d *appsv1.Deployment) { d.UID = "uid-anew" })
	for name, test := range map[string]struct {
		former, stored *appsv1.Deployment
		deletes        bool
	}{
		"as cached":               {old, deployment(), true},
		"gone":                    {old, nil, false},
		"changed":                 {old, changed, false},
		"made anew":               {old, anew, false},
		"gone, and nobody served": {idle, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			keeper, client := newTestKeeper(t, list(deployment(), test.former), list(test.stored, test.former))
			_, err := keeper.Keep(t.Context(), parent())
			if apierrors.IsConflict(err) == test.deletes {
				t.Errorf("error = %v, want a conflict: %v", err, !test.deletes)
			}
			_, err = client.AppsV1().Deployments("default").Get(t.Context(), test.former.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != test.deletes {
				t.Errorf("the former Deployment: %v, want it deleted: %v", err, test.deletes)
			}
		})
	}
}

func TestTwoKeepersShareOneIndex(t *testing.T) {
	_, client := newTestKeeper(t, nil, nil)
	informer := newInformer(client)
	for range 2 {
		if _, err := NewKeeper(informer.GetStore(), informer, client.AppsV1(), nil, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := informer.GetIndexer().Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "orphan"}}); err != nil {
		t.Error(err)
	}
}
