// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

func TestStatusIsWrittenAsWhole(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("a", "node-1", 1))
	if !f.sync() {
		t.Fatal("nothing was written")
	}
	want := icecreamv1alpha1.IcecreamStatus{
		ObservedGeneration: 1, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, Selector: "app=icecream",
		Conditions: []metav1.Condition{condition("Ready")},
		Placements: []icecreamv1alpha1.Placement{placement("a", "node-1", 1)},
	}
	if diff := cmp.Diff(want, f.icecream().Status); diff != "" {
		t.Errorf("unexpected status (-want +got):\n%s", diff)
	}
	if f.sync() {
		t.Error("an unchanged status was written again")
	}
}

// Each difference alone must cause a write.
func TestEachDifferenceIsWritten(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"generation": func(f *fixture) { f.workload.ObservedGeneration++ },
		"replicas":   func(f *fixture) { f.workload.Replicas++ },
		"ready":      func(f *fixture) { f.workload.ReadyReplicas++ },
		"available":  func(f *fixture) { f.workload.AvailableReplicas++ },
		"selector":   func(f *fixture) { f.workload.Selector = "app=other" },
		"conditions": func(f *fixture) { f.workload.Conditions = []metav1.Condition{condition("Stalled")} },
		"a new Pod":  func(f *fixture) { f.add(newPod("b", "node-1", 2)) },
		"no Pod":     func(f *fixture) { f.remove(newPod("a", "node-1", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.add(newPod("a", "node-1", 1))
			f.sync()
			change(f)
			if !f.sync() {
				t.Error("nothing was written")
			}
			if f.sync() {
				t.Error("an unchanged status was written again")
			}
		})
	}
}

func TestForeignStatusFieldsAreKept(t *testing.T) {
	f := newFixture(t)
	f.sync()
	icecream := f.icecream()
	icecream.Status.Pods = &workloadv1alpha1.PodSummary{Summary: "none"}
	icecream.Status.Conditions = append([]metav1.Condition{condition("Other")}, icecream.Status.Conditions...)
	if _, err := f.sample.IcecreamV1alpha1().Icecreams("default").UpdateStatus(t.Context(), icecream, metav1.UpdateOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
	if f.sync() {
		t.Error("the status was written, but only foreign fields have changed")
	}
	f.workload.Replicas++
	f.sync()
	status := f.icecream().Status
	if status.Replicas != 4 || status.Pods == nil || !slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == "Other" }) {
		t.Errorf("status = %+v, want 4 replicas and what others wrote kept", status)
	}
}

func TestOmittedPlacementsAreCounted(t *testing.T) {
	f := newFixture(t)
	f.add(manyPods(0, 503)...)
	f.sync()
	if s := f.icecream().Status; len(s.Placements) != 500 || s.PlacementsOmitted != 3 {
		t.Errorf("%d placements and %d omitted, want 500 and 3", len(s.Placements), s.PlacementsOmitted)
	}
	if n := len(f.lines()); n != 503 {
		t.Errorf("%d lines, want 503", n)
	}
	if f.sync() {
		t.Error("an unchanged status was written again")
	}
	f.wantLines()
}

// A finalizer holds the Icecream, and its Pods still change.
func TestPlacementsOfIcecreamInDeletion(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("a", "node-1", 1))
	f.sync()
	f.wantLines(line("a", "node-1"))
	icecream := f.icecream()
	icecream.DeletionTimestamp, icecream.Finalizers = &metav1.Time{Time: at(2)}, []string{"example.com/hold"}
	if err := f.sample.Tracker().Update(icecreamv1alpha1.SchemeGroupVersion.WithResource("icecreams"), icecream, "default"); err != nil {
		t.Fatal(err)
	}

	f.remove(newPod("a", "node-1", 1))
	f.kind.departed(newPod("a", "node-1", 1))
	f.add(newPod("b", "node-2", 3))
	f.sync()
	f.wantLines(line("b", "node-2"))
	f.wantPlacements(placement("b", "node-2", 3))
	f.kind.departed(newPod("c", "node-3", 4)) // it came and went
	f.wantLines(line("c", "node-3"))
}

// The apply contains counts even if they are zero, and the resourceVersion.
func TestStatusApplyIncludesZerosAndResourceVersion(t *testing.T) {
	f := newFixture(t)
	f.workload.Replicas, f.workload.ReadyReplicas, f.workload.AvailableReplicas = 0, 0, 0
	f.sync()
	i := slices.IndexFunc(f.sample.Actions(), func(a clienttesting.Action) bool {
		return a.Matches("patch", "icecreams/status") || a.GetVerb() == "patch"
	})
	patch := f.sample.Actions()[i].(clienttesting.PatchActionImpl)
	var applied struct {
		Metadata metav1.ObjectMeta
		Status   map[string]any
	}
	if err := json.Unmarshal(patch.Patch, &applied); err != nil {
		t.Fatal(err)
	}
	if applied.Metadata.ResourceVersion != "1" || patch.GetSubresource() != "status" {
		t.Errorf("applied to %q of version %q, want the status of 1", patch.GetSubresource(), applied.Metadata.ResourceVersion)
	}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "placementsOmitted"} {
		if applied.Status[field] != 0.0 {
			t.Errorf("%s = %v, want 0", field, applied.Status[field])
		}
	}
	if _, ok := applied.Status["pods"]; ok {
		t.Error("the apply contains pods, which belong to the aggregator")
	}
}

func TestOnlyMovedPodEnqueuesIcecream(t *testing.T) {
	before := newPod("a", "node-1", 1)
	if movedPlace(before, newPod("a", "node-1", 1)) {
		t.Error("movedPlace() of an unmoved Pod = true, want false")
	}
	if !movedPlace(newPod("a", "", 1), before) {
		t.Error("movedPlace() of a placed Pod = false, want true")
	}
}
