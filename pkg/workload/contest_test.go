// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func managed(manager, subresource, fields string, second int) metav1.ManagedFieldsEntry {
	at := metav1.Unix(int64(second), 0)
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
}

// contested is our Deployment as an autoscaler has left it.
func contested() *appsv1.Deployment {
	return deployment(withReplicas(ptr.To[int32](9)), func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{
			managed("test-manager", "", `{"f:spec":{"f:replicas":{}}}`, 9),
			managed("kubectl", "", `{"f:spec":{"f:replicas":{}}}`, 1),
			managed("autoscaler", "scale", `{"f:spec":{"f:replicas":{}}}`, 2),
			managed("deployment-controller", "status", `{"f:status":{"f:replicas":{}}}`, 3),
			managed("labeller", "", `{"f:metadata":{"f:labels":{}}}`, 4),
		}
	})
}

func TestReplicasThatAreContestedAreCorrectedSlowly(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	keeper, client := newTestKeeper(t, list(contested()), list(contested()))
	keeper.clock = clock
	// keep has the rival set the replicas and lets the keeper look.
	keep := func(p Parent) (state State, patched bool) {
		t.Helper()
		client.ClearActions()
		state, err := keeper.Keep(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return state, len(client.Actions()) == 1
	}

	for i := range 5 {
		if state, patched := keep(parent()); !patched || (state.Obstacle != nil) != (i == 4) {
			t.Fatalf("correction %d: patched %v, obstacle %v", i+1, patched, state.Obstacle)
		}
		clock.Step(time.Second)
	}
	state, patched := keep(parent())
	if patched || state.Again != 9*time.Second {
		t.Fatalf("sixth time: patched %v, again after %v, want it held back for 9s", patched, state.Again)
	}
	o := state.Obstacle
	if o == nil || o.Reason != "ReplicasContested" || !o.Passes || !strings.Contains(o.Message, `field manager "autoscaler"`) {
		t.Errorf("obstacle = %+v, want ReplicasContested by the autoscaler", o)
	}

	clock.Step(9 * time.Second)
	if state, patched := keep(parent()); !patched || state.Obstacle == nil || state.Again != contestPeriod {
		t.Fatalf("after 10 s: patched %v, obstacle %v, again after %v, want one correction", patched, state.Obstacle, state.Again)
	}
	if _, patched := keep(parent()); patched {
		t.Fatal("corrected twice in 10 s")
	}

	// A new wish of the parent is carried out at once.
	wish := parent(func(p *Parent) {
		p.Object = &metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "uid-a", Generation: 5}
	})
	if state, patched := keep(wish); !patched || state.Obstacle != nil {
		t.Errorf("new generation: patched %v, obstacle %v", patched, state.Obstacle)
	}
}

func TestAContestEndsWhenTheRivalStops(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	keeper, _ := newTestKeeper(t, list(contested()), list(contested()))
	keeper.clock = clock
	for range 5 {
		if _, err := keeper.Keep(t.Context(), parent()); err != nil {
			t.Fatal(err)
		}
	}
	if err := keeper.deployments.Update(deployment()); err != nil { // our correction stands
		t.Fatal(err)
	}
	for _, step := range []struct {
		after     time.Duration
		contested bool
	}{{0, true}, {15 * time.Second, true}, {5 * time.Second, false}} {
		clock.Step(step.after)
		state, err := keeper.Keep(t.Context(), parent())
		if err != nil || (state.Obstacle != nil) != step.contested || (state.Again > 0) != step.contested {
			t.Errorf("%v later: %+v, %v, want contested: %v", step.after, state, err, step.contested)
		}
	}
}

func TestSlowCorrectionsAreNoContest(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	keeper, client := newTestKeeper(t, list(contested()), list(contested()))
	keeper.clock = clock
	for i := range 20 {
		client.ClearActions()
		state, err := keeper.Keep(t.Context(), parent())
		if err != nil || state.Obstacle != nil || len(client.Actions()) != 1 {
			t.Fatalf("correction %d: %+v, %v, %d actions", i+1, state, err, len(client.Actions()))
		}
		clock.Step(2 * contestPeriod)
	}
}

func TestContestsThatAreOverAreForgotten(t *testing.T) {
	var contests contests
	now := time.Now()
	for i := range 100 { // one after the other, each once
		p := parent()
		p.SetUID(types.UID(strconv.Itoa(i)))
		contests.corrected(p, contested(), "test-manager", now)
		now = now.Add(contestPeriod)
	}
	// Those that are not over, and those that came to be since the last sweep.
	if n := len(contests.byParent); n > 4 {
		t.Errorf("%d contests are remembered", n)
	}
}

func TestTheImageIsCorrectedDuringAContest(t *testing.T) {
	live := contested()
	keeper, client := newTestKeeper(t, list(live), list(live))
	for range 5 {
		if _, err := keeper.Keep(t.Context(), parent()); err != nil {
			t.Fatal(err)
		}
	}
	client.ClearActions()
	if _, err := keeper.Keep(t.Context(), parent(wantImage("nginx:1.29"))); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{"containers":[{"image":"nginx:1.29","name":"nginx"}]}}}}`
	if patch := client.Actions()[0].(clienttesting.PatchActionImpl); string(patch.Patch) != want {
		t.Errorf("patch = %s, want %s", patch.Patch, want)
	}
}

// A rival that sets image and replicas is corrected by one patch, and is a rival all the same.
func TestPatchedReplicasAreContested(t *testing.T) {
	keeper, client := newTestKeeper(t, list(contested()), list(contested()))
	wish := parent(wantImage("nginx:1.29"))
	for i := range quickCorrections {
		client.ClearActions()
		state, err := keeper.Keep(t.Context(), wish)
		if err != nil || len(client.Actions()) != 1 || client.Actions()[0].GetVerb() != "patch" {
			t.Fatalf("correction %d: %v, actions %v, want one patch", i+1, err, client.Actions())
		}
		if last := i == quickCorrections-1; (state.Obstacle != nil) != last {
			t.Errorf("correction %d: obstacle %+v, want one only after the last", i+1, state.Obstacle)
		}
	}
}
