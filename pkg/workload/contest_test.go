// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func managedBy(manager, subresource, fields string, second int) metav1.ManagedFieldsEntry {
	at := metav1.Unix(int64(second), 0)
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
}

// contested returns our Deployment as an autoscaler has left it.
func contested() *appsv1.Deployment {
	return deployment(withReplicas(ptr.To[int32](9)), func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{
			managedBy("test-manager", "", `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`, 9),
			managedBy("kubectl", "", `{"f:spec":{"f:replicas":{}}}`, 1),
			managedBy("autoscaler", "scale", `{"f:spec":{"f:replicas":{}}}`, 2),
			managedBy("deployment-controller", "status", `{"f:status":{"f:replicas":{}}}`, 3),
			managedBy("labeller", "", `{"f:metadata":{"f:labels":{}}}`, 4),
		}
	})
}

// TestContestEndsWithoutContainer contests replicas while another blocker hides that.
func TestContestEndsWithoutContainer(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	renamed := contested()
	renamed.Spec.Template.Spec.Containers[0].Name = "renamed"
	reconciler, client := newTestReconciler(t, list(renamed), list(renamed))
	reconciler.clock = clock
	var state State
	for range 6 {
		client.ClearActions()
		var err error
		if state, err = reconciler.Reconcile(t.Context(), owner(wantImage("nginx:2"))); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	if len(client.Actions()) > 0 || state.Blocker == nil || state.Blocker.Reason != "ContainerMissing" || state.Again != 9*time.Second {
		t.Errorf("after %v: calls %v, blocker %+v, want the replicas to be corrected after 9s", state.Again, client.Actions(), state.Blocker)
	}
}

func TestContestedReplicasAreCorrectedSlowly(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	reconciler, client := newTestReconciler(t, list(contested()), list(contested()))
	reconciler.clock = clock
	// keep makes the rival set the replicas and reconciles.
	keep := func(p Owner) (state State, patched bool) {
		t.Helper()
		client.ClearActions()
		state, err := reconciler.Reconcile(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return state, len(client.Actions()) == 1
	}

	for i := range 5 {
		if state, patched := keep(owner()); !patched || (state.Blocker != nil) != (i >= 2) {
			t.Fatalf("correction %d: patched %v, blocker %v", i+1, patched, state.Blocker)
		}
		clock.Step(time.Second)
	}
	state, patched := keep(owner())
	if patched || state.Again != 9*time.Second {
		t.Fatalf("sixth time: patched %v, again after %v, want it delayed for 9s", patched, state.Again)
	}
	o := state.Blocker
	if o == nil || o.Reason != "ReplicasContested" || ConditionFor(o.Reason) != "Stalled" || !strings.Contains(o.Message, `field manager "autoscaler"`) {
		t.Errorf("blocker = %+v, want ReplicasContested by the autoscaler", o)
	}

	clock.Step(9 * time.Second)
	if state, patched := keep(owner()); !patched || state.Blocker == nil || state.Again != contestPeriod {
		t.Fatalf("after 10 s: patched %v, blocker %v, again after %v, want one correction", patched, state.Blocker, state.Again)
	}
	if _, patched := keep(owner()); patched {
		t.Fatal("corrected twice in 10 s")
	}
	if hold, blocker, again := reconciler.corrections.of(owner(), nil, clock.Now()); hold != (Fields{}) || blocker != nil || again != 0 {
		t.Errorf("without a Deployment: hold %v, blocker %v, again after %v, want none", hold, blocker, again)
	}

	// A change of another field of the owner's spec lifts nothing, one of this field does.
	later := func(p *Owner) { p.Object.(*metav1.ObjectMeta).Generation = 5 }
	if _, patched := keep(owner(later)); patched {
		t.Error("another generation: corrected twice in 10 s")
	}
	if state, patched := keep(owner(later, wantReplicas(ptr.To[int32](4)))); !patched || state.Blocker != nil {
		t.Errorf("another value: patched %v, blocker %v", patched, state.Blocker)
	}
}

func TestContestEndsWhenRivalStops(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	reconciler, _ := newTestReconciler(t, list(contested()), list(contested()))
	reconciler.clock = clock
	for range 5 {
		if _, err := reconciler.Reconcile(t.Context(), owner()); err != nil {
			t.Fatal(err)
		}
	}
	if err := reconciler.deployments.Update(deployment()); err != nil { // our correction stands
		t.Fatal(err)
	}
	for _, step := range []struct {
		after     time.Duration
		contested bool
	}{{0, true}, {19 * time.Second, true}, {time.Second, false}} {
		clock.Step(step.after)
		state, err := reconciler.Reconcile(t.Context(), owner())
		if err != nil || (state.Blocker != nil) != step.contested || (state.Again > 0) != step.contested {
			t.Errorf("%v later: %+v, %v, want contested: %v", step.after, state, err, step.contested)
		}
	}
}

// A rival that sets the field every minute is named from the third correction on, and never
// disappears from the status between two of them.
func TestSlowRivalIsNamed(t *testing.T) {
	clock := testingclock.NewFakeClock(present)
	reconciler, client := newTestReconciler(t, list(contested()), list(contested()))
	reconciler.clock = clock
	update := func(d *appsv1.Deployment) {
		if err := reconciler.deployments.Update(d); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		client.ClearActions()
		update(contested())
		state, err := reconciler.Reconcile(t.Context(), owner())
		if named := state.Blocker != nil; err != nil || len(client.Actions()) != 1 || named != (i >= 2) {
			t.Fatalf("correction %d: %+v, %v, %d actions", i+1, state.Blocker, err, len(client.Actions()))
		}
		update(deployment())
		clock.Step(59 * time.Second)
		state, err = reconciler.Reconcile(t.Context(), owner())
		if named := state.Blocker != nil; err != nil || named != (i >= 2) {
			t.Fatalf("after correction %d: %+v, %v", i+1, state.Blocker, err)
		}
		clock.Step(time.Second)
	}
	clock.Step(time.Minute) // it ends after twice the pause
	if state, err := reconciler.Reconcile(t.Context(), owner()); err != nil || state.Blocker != nil {
		t.Errorf("two minutes after the last correction: %+v, %v, want no contest", state.Blocker, err)
	}
}

// Two corrections an hour, or any number that follow a change of the spec, are no contest.
func TestRareCorrectionsAreNotContested(t *testing.T) {
	clock := testingclock.NewFakeClock(present)
	reconciler, client := newTestReconciler(t, list(contested()), list(contested()))
	reconciler.clock = clock
	for i := range 20 {
		client.ClearActions()
		state, err := reconciler.Reconcile(t.Context(), owner())
		if err != nil || state.Blocker != nil || len(client.Actions()) != 1 {
			t.Fatalf("correction %d: %+v, %v, %d actions", i+1, state.Blocker, err, len(client.Actions()))
		}
		clock.Step(31 * time.Minute)
	}
	for i := range 20 {
		client.ClearActions()
		wish := owner(wantReplicas(ptr.To(int32(20+i))), func(o *Owner) { o.Object.(*metav1.ObjectMeta).Generation = int64(5 + i) })
		state, err := reconciler.Reconcile(t.Context(), wish)
		if err != nil || state.Blocker != nil || len(client.Actions()) != 1 {
			t.Fatalf("change %d: %+v, %v, %d actions", i+1, state.Blocker, err, len(client.Actions()))
		}
	}
}

// An autoscaler of the object changes the declared replicas every 15 s. That does not lift the
// brake of the contested image.
func TestNewReplicasDoNotLiftBrakeOfImage(t *testing.T) {
	clock := testingclock.NewFakeClock(present)
	live := deployment(withImage("httpd"))
	reconciler, client := newTestReconciler(t, list(live), list(live))
	reconciler.clock = clock
	images := 0
	client.PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "image") {
			images++
		}
		return false, nil, nil
	})
	for second := range 120 {
		wish := owner(wantImage("nginx:1.29"), wantReplicas(ptr.To(int32(3+second/15%2))), func(o *Owner) {
			o.Object.(*metav1.ObjectMeta).Generation = int64(4 + second/15)
		})
		if _, err := reconciler.Reconcile(t.Context(), wish); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	if images > 5+12 {
		t.Errorf("%d patches of the image in 2 minutes, want five quick ones and one per 10 s", images)
	}
}

func TestFinishedContestsAreForgotten(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	corrections := corrections{utilcache.NewExpiringWithClock(clock)}
	for i := range 100 { // sequentially, each once
		p := owner()
		p.SetUID(types.UID(strconv.Itoa(i)))
		corrections.note(p, Replicas, contested(), deployment(), "test-manager", clock.Now())
		clock.Step(contestWindow / 2)
	}
	if n := corrections.byField.Len(); n > 2 {
		t.Errorf("%d contests remembered", n)
	}
}

func TestImageIsCorrectedDuringContest(t *testing.T) {
	live := contested()
	reconciler, client := newTestReconciler(t, list(live), list(live))
	for range 5 {
		if _, err := reconciler.Reconcile(t.Context(), owner()); err != nil {
			t.Fatal(err)
		}
	}
	client.ClearActions()
	if _, err := reconciler.Reconcile(t.Context(), owner(wantImage("nginx:1.29"))); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{"containers":[{"image":"nginx:1.29","name":"nginx"}]}}}}`
	if patch := client.Actions()[0].(clienttesting.PatchActionImpl); string(patch.Patch) != want {
		t.Errorf("patch = %s, want %s", patch.Patch, want)
	}
}

// A rival that sets image and replicas is corrected by one patch, and still counts as a
// rival.
func TestPatchedReplicasAreContested(t *testing.T) {
	reconciler, client := newTestReconciler(t, list(contested()), list(contested()))
	wish := owner(wantImage("nginx:1.29"))
	for i := range quickCorrections {
		client.ClearActions()
		state, err := reconciler.Reconcile(t.Context(), wish)
		if err != nil || len(client.Actions()) != 1 || client.Actions()[0].GetVerb() != "patch" {
			t.Fatalf("correction %d: %v, actions %v, want one patch", i+1, err, client.Actions())
		}
		if named := i >= contestedAfter-1; (state.Blocker != nil) != named {
			t.Errorf("correction %d: blocker %+v, want one from the third on", i+1, state.Blocker)
		}
	}
}

// A contested image is also corrected slowly, since each correction is a rollout.
func TestImageContestIsCorrectedSlowly(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	live := deployment(withImage("httpd"), func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{
			managedBy("autoscaler", "", `{"f:spec":{"f:replicas":{}}}`, 9),
			managedBy("image-updater", "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{}}}}}}}`, 1),
		}
	})
	reconciler, client := newTestReconciler(t, list(live), list(live))
	reconciler.clock = clock
	wish := owner(wantImage("nginx:1.29"))
	begin := clock.Now()
	var patched []time.Duration
	for clock.Since(begin) < 40*time.Second {
		client.ClearActions()
		state, err := reconciler.Reconcile(t.Context(), wish)
		if err != nil {
			t.Fatal(err)
		}
		if len(client.Actions()) > 0 {
			patched = append(patched, clock.Since(begin))
		}
		if o := state.Blocker; len(patched) >= quickCorrections && (o == nil || o.Reason != "ImageContested" || state.Again <= 0 ||
			!strings.HasPrefix(o.Message, `the image of container "nginx" of Deployment "web" is also set by field manager "image-updater": remove spec.image from Foo "a"`)) {
			t.Fatalf("after %v: blocker = %+v, want ImageContested by the image-updater", clock.Since(begin), o)
		}
		clock.Step(time.Second)
	}
	want := []time.Duration{0, 1, 2, 3, 4, 14, 24, 34}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, patched); diff != "" {
		t.Errorf("patched at other times (-want +got):\n%s", diff)
	}

	// Replicas are still corrected.
	drifted := live.DeepCopy()
	drifted.Spec.Replicas = ptr.To[int32](9)
	if err := reconciler.deployments.Update(drifted); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	if _, err := reconciler.Reconcile(t.Context(), wish); err != nil || len(client.Actions()) != 1 || client.Actions()[0].GetVerb() != "patch" {
		t.Errorf("Reconcile(): %v, actions %v, want the replicas corrected", err, client.Actions())
	}
}
