// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
)

func TestAPlacementIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("b", "node-2", 2), newPod("a", "node-1", 1), newPod("c", "", 0))
	f.sync()
	f.wantLines(line("a", "node-1"), line("b", "node-2"))
	f.wantEvents("Normal PodsScheduled 2 Pods were placed on node-1, node-2")

	// Neither a resync nor another process repeats what is recorded.
	f.sync()
	f.wantLines()
	f.restart()
	f.add(newPod("c", "node-3", 3))
	f.sync()
	f.wantLines(line("c", "node-3"))
	f.wantEvents("Normal PodsScheduled Pod c was placed on node-3")

	// One that is gone is forgotten, one that is created anew is another.
	f.remove(newPod("a", "node-1", 1))
	f.sync()
	f.wantLines()
	f.wantEvents()
	f.add(newPod("a", "node-1", 4, withUID("uid-anew")))
	f.sync()
	f.wantLines(line("a", "node-1"))
	f.wantEvents("Normal PodsScheduled Pod a was placed on node-1")
}

func TestARefusedRecordIsNotLoggedAgain(t *testing.T) {
	f := newFixture(t)
	refused := true
	conflict := apierrors.NewConflict(icecreamv1alpha1.Resource("icecreams"), "example", errors.New("changed"))
	f.refuse(&refused, conflict)
	f.add(newPod("a", "node-1", 1))
	try := func() {
		t.Helper()
		if _, err := f.apply(); !errors.Is(err, conflict) {
			t.Fatalf("ApplyStatus() = %v, want %v", err, conflict)
		}
	}
	try()
	f.wantLines(line("a", "node-1")) // before it is recorded, lest it be lost
	f.add(newPod("b", "node-1", 2))
	try()
	f.wantLines(line("b", "node-1"))
	try()
	f.wantLines()
	f.wantEvents() // it would say what is not recorded

	// Only a process that ended in between leaves lines to be logged again.
	f.restart()
	try()
	f.wantLines(line("a", "node-1"), line("b", "node-1"))

	refused = false
	f.sync()
	f.wantLines()
	f.wantEvents("Normal PodsScheduled 2 Pods were placed on node-1")
	f.wantPlacements(placement("a", "node-1", 1), placement("b", "node-1", 2))
}

func TestAnotherIcecreamOfThatNameHasLinesOfItsOwn(t *testing.T) {
	f := newFixture(t)
	first, second := f.icecream(), f.icecream()
	second.UID = "uid-another"
	placed := []icecreamv1alpha1.Placement{placement("a", "node-1", 1)}
	f.kind.log.tell(first, placed)
	f.kind.log.tell(second, placed)
	f.wantLines(line("a", "node-1"), line("a", "node-1"))
}

func TestWhatIsRecordedIsForgotten(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("a", "node-1", 1))
	f.sync()
	if n := f.kind.log.unrecorded.Len(); n != 0 {
		t.Errorf("%d Icecreams are remembered, want none", n)
	}
}

func TestSummaryOfPlacements(t *testing.T) {
	for want, nodes := range map[string][]int{
		"Pod pod-000 was placed on node-7":                                        {7},
		"2 Pods were placed on node-1":                                            {1, 1},
		"3 Pods were placed on node-1, node-2":                                    {2, 1, 2},
		"5 Pods were placed on node-1, node-2, node-3, node-4, node-5":            {5, 4, 3, 2, 1},
		"6 Pods were placed on node-1, node-2, node-3, node-4, node-5 and 1 more": {1, 2, 3, 4, 5, 6},
		"8 Pods were placed on node-1, node-2, node-3, node-4, node-5 and 2 more": {1, 2, 3, 4, 5, 6, 7, 7},
	} {
		var placed []icecreamv1alpha1.Placement
		for i, node := range nodes {
			placed = append(placed, placement(podName(i), fmt.Sprintf("node-%d", node), i))
		}
		if got := summary(placed); got != want {
			t.Errorf("summary() of nodes %v = %q, want %q", nodes, got, want)
		}
	}
}

// A Pod may be placed and gone again before its Icecream is synced.
func TestAPlacementOfAPodThatIsGoneIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("a", "node-1", 1))
	f.sync()
	f.wantLines(line("a", "node-1"))
	f.events.Events = make(chan string, 100)

	// Never seen while it was there.
	f.kind.log.depart("uid-example", placement("b", "node-2", 2))
	if f.sync() {
		t.Error("something was written, though no Pod that is there was placed")
	}
	f.wantLines(line("b", "node-2"))
	f.wantEvents("Normal PodsScheduled Pod b was placed on node-2")
	f.sync()
	f.wantLines()

	// Recorded, and its departure noted before or after the record is gone.
	f.kind.log.depart("uid-example", placement("a", "node-1", 1))
	f.remove(newPod("a", "node-1", 1))
	f.sync()
	f.wantLines()
	f.add(newPod("c", "node-3", 3))
	f.sync()
	f.wantLines(line("c", "node-3"))
	f.remove(newPod("c", "node-3", 3))
	f.sync()
	f.kind.log.depart("uid-example", placement("c", "node-3", 3))
	f.sync()
	f.wantLines()

	// Of another Icecream.
	f.kind.log.depart("uid-other", placement("d", "node-1", 4))
	f.sync()
	f.wantLines()
}
