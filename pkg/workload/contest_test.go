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
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

func managedBy(manager, subresource, fields string, second int) metav1.ManagedFieldsEntry {
	at := metav1.Unix(int64(second), 0)
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at,
		FieldsV1: metav1.NewFieldsV1(fields)}
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

// writer decides and remembers corrections as the daemon does, without an API server.
type writer struct {
	*Workload[*samplev1alpha1.Foo]
	*testingclock.FakeClock
	// admit is what admission does to a Deployment that is written, nil for nothing.
	admit func(*appsv1.Deployment)
}

func newWriter() *writer {
	c := testingclock.NewFakeClock(present)
	return &writer{&Workload[*samplev1alpha1.Foo]{manager: "test-manager", corrections: newCorrections()}, c, nil}
}

// sync returns the state after a sync that finds the Deployment, and the fields that it wrote.
func (w *writer) sync(o Owner, live *appsv1.Deployment) (State, fieldSet) {
	d, state := w.decide(o, view{Live: live, Now: w.Now()})
	if !d.writes() {
		return state, fieldSet{}
	}
	before, fields := d.Correct, d.Differing
	after := d.Create
	if before != nil {
		after = before.DeepCopy()
		o.declare(after, fields)
	} else {
		fields = fieldSet{fieldReplicas: true, fieldImage: true}
	}
	if w.admit != nil {
		w.admit(after)
	}
	for f := range fieldCount {
		if fields[f] {
			w.corrections.note(o, f, before, after, w.manager, w.Now())
		}
	}
	_, contest, again := w.corrections.hold(o, after, w.Now())
	if state.Again = sooner(d.Again, again); d.Blocker == nil {
		state.Blocker = contest
	}
	return state, fields
}

var onlyReplicas, onlyImage = fieldSet{fieldReplicas: true}, fieldSet{fieldImage: true}

func ofGeneration(generation int64) func(*Owner) {
	return func(o *Owner) { o.Object.(*metav1.ObjectMeta).Generation = generation }
}

// TestContestEndsWithoutContainer contests replicas while another blocker hides that.
func TestContestEndsWithoutContainer(t *testing.T) {
	w, renamed := newWriter(), contested()
	renamed.Spec.Template.Spec.Containers[0].Name = "renamed"
	var state State
	var wrote fieldSet
	for range 6 {
		state, wrote = w.sync(owner(wantImage("nginx:2")), renamed)
		w.Step(time.Second)
	}
	if wrote.any() || state.Blocker == nil || state.Blocker.Reason != "ContainerMissing" || state.Again != 9*time.Second {
		t.Errorf("after %v: wrote %v, blocker %+v, want the replicas to be corrected after 9s", state.Again, wrote, state.Blocker)
	}
}

func TestContestedReplicasAreCorrectedSlowly(t *testing.T) {
	w := newWriter()
	for i := range quickCorrections {
		if state, wrote := w.sync(owner(), contested()); wrote != onlyReplicas || (state.Blocker != nil) != (i >= 2) {
			t.Fatalf("correction %d: wrote %v, blocker %v", i+1, wrote, state.Blocker)
		}
		w.Step(time.Second)
	}
	state, wrote := w.sync(owner(), contested())
	if wrote.any() || state.Again != 9*time.Second {
		t.Fatalf("sixth time: wrote %v, again after %v, want it delayed for 9s", wrote, state.Again)
	}
	o := state.Blocker
	if o == nil || o.Reason != "ReplicasContested" || ConditionFor(o.Reason) != "Stalled" || !strings.Contains(o.Message, `field manager "autoscaler"`) {
		t.Errorf("blocker = %+v, want ReplicasContested by the autoscaler", o)
	}
	w.Step(9 * time.Second)
	if state, wrote := w.sync(owner(), contested()); wrote != onlyReplicas || state.Blocker == nil ||
		state.Again != contestPeriod {
		t.Fatalf("after 10 s: wrote %v, blocker %v, again after %v, want one correction", wrote, state.Blocker, state.Again)
	}
	if hold, blocker, again := w.corrections.hold(owner(), nil, w.Now()); hold.any() || blocker != nil || again != 0 {
		t.Errorf("without a Deployment: hold %v, blocker %v, again after %v, want none", hold, blocker, again)
	}
	// A change of another field of the owner's spec lifts nothing, one of this field does.
	for _, step := range []struct {
		what  string
		owner Owner
		wrote fieldSet
	}{
		{"again", owner(), fieldSet{}},
		{"another image", owner(ofGeneration(5), wantImage("nginx:1.29")), onlyImage},
		{"another number", owner(ofGeneration(5), wantReplicas(ptr.To[int32](4))), onlyReplicas},
	} {
		if _, wrote := w.sync(step.owner, contested()); wrote != step.wrote {
			t.Errorf("%s: wrote %v, want %v", step.what, wrote, step.wrote)
		}
	}
}

func TestContestEndsWhenRivalStops(t *testing.T) {
	w := newWriter()
	for range quickCorrections {
		w.sync(owner(), contested())
	}
	for _, step := range []struct {
		after     time.Duration
		contested bool
	}{{0, true}, {19 * time.Second, true}, {time.Second, false}} {
		w.Step(step.after)
		state, wrote := w.sync(owner(), deployment()) // our correction stands
		if wrote.any() || (state.Blocker != nil) != step.contested || (state.Again > 0) != step.contested {
			t.Errorf("%v later: %+v, wrote %v, want contested: %v", step.after, state, wrote, step.contested)
		}
	}
}

// A rival that sets the field every minute is named from the third correction on, and never
// disappears from the status between two of them.
func TestSlowRivalIsNamed(t *testing.T) {
	w := newWriter()
	for i := range 10 {
		if state, wrote := w.sync(owner(), contested()); wrote != onlyReplicas || (state.Blocker != nil) != (i >= 2) {
			t.Fatalf("correction %d: %+v, wrote %v", i+1, state.Blocker, wrote)
		}
		w.Step(59 * time.Second)
		if state, _ := w.sync(owner(), deployment()); (state.Blocker != nil) != (i >= 2) {
			t.Fatalf("after correction %d: %+v", i+1, state.Blocker)
		}
		w.Step(time.Second)
	}
	w.Step(time.Minute) // it ends after twice the pause
	if state, _ := w.sync(owner(), deployment()); state.Blocker != nil {
		t.Errorf("two minutes after the last correction: %+v, want no contest", state.Blocker)
	}
}

// Two corrections an hour, or any number that follow a change of the spec, are no contest.
func TestRareCorrectionsAreNotContested(t *testing.T) {
	w := newWriter()
	for i := range 20 {
		if state, wrote := w.sync(owner(), contested()); state.Blocker != nil || wrote != onlyReplicas {
			t.Fatalf("correction %d: %+v, wrote %v", i+1, state.Blocker, wrote)
		}
		w.Step(31 * time.Minute)
	}
	for i := range 20 {
		wish := owner(wantReplicas(ptr.To(int32(20+i))), ofGeneration(int64(5+i)))
		if state, wrote := w.sync(wish, contested()); state.Blocker != nil || wrote != onlyReplicas {
			t.Fatalf("change %d: %+v, wrote %v", i+1, state.Blocker, wrote)
		}
	}
}

// An autoscaler of the object changes the declared replicas every 15 s. That does not lift the
// brake of the contested image.
func TestNewReplicasDoNotLiftBrakeOfImage(t *testing.T) {
	w, images := newWriter(), 0
	for second := range 120 {
		wish := owner(wantImage("nginx:1.29"), wantReplicas(ptr.To(int32(3+second/15%2))), ofGeneration(int64(4+second/15)))
		if _, wrote := w.sync(wish, deployment(withImage("httpd"))); wrote[fieldImage] {
			images++
		}
		w.Step(time.Second)
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
		corrections.note(p, fieldReplicas, contested(), deployment(), "test-manager", clock.Now())
		clock.Step(contestWindow / 2)
	}
	if n := corrections.byField.Len(); n > 2 {
		t.Errorf("%d contests remembered", n)
	}
}

// A rival that sets image and replicas is corrected by one patch, and still counts as a
// rival.
func TestPatchedReplicasAreContested(t *testing.T) {
	w := newWriter()
	for i := range quickCorrections {
		state, wrote := w.sync(owner(wantImage("nginx:1.29")), contested())
		if named := i >= contestedAfter-1; wrote != (fieldSet{true, true}) || (state.Blocker != nil) != named {
			t.Errorf("correction %d: wrote %v, blocker %+v, want both fields, and a rival from the third on", i+1, wrote, state.Blocker)
		}
	}
}

// A contested image is also corrected slowly, since each correction is a rollout.
func TestImageContestIsCorrectedSlowly(t *testing.T) {
	live := deployment(withImage("httpd"), func(d *appsv1.Deployment) {
		d.ManagedFields = []metav1.ManagedFieldsEntry{
			managedBy("autoscaler", "", `{"f:spec":{"f:replicas":{}}}`, 9),
			managedBy("image-updater", "", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"nginx\"}":{"f:image":{}}}}}}}`, 1),
		}
	})
	w, wish := newWriter(), owner(wantImage("nginx:1.29"))
	var patched []int
	for second := range 40 {
		state, wrote := w.sync(wish, live)
		if wrote.any() {
			patched = append(patched, second)
		}
		if o := state.Blocker; len(patched) >= quickCorrections && (o == nil || o.Reason != "ImageContested" || state.Again <= 0 ||
			!strings.HasPrefix(o.Message, `the image of container "nginx" of Deployment "web" is also set by field manager "image-updater": remove spec.image from Foo "a"`)) {
			t.Fatalf("after %d s: blocker = %+v, want ImageContested by the image-updater", second, o)
		}
		w.Step(time.Second)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 14, 24, 34}, patched); diff != "" {
		t.Errorf("patched at other seconds (-want +got):\n%s", diff)
	}
	drifted := live.DeepCopy()
	drifted.Spec.Replicas = ptr.To[int32](9)
	if _, wrote := w.sync(wish, drifted); wrote != onlyReplicas {
		t.Errorf("wrote %v, want the replicas, which nobody contests", wrote)
	}
}
