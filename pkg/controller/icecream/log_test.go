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

func TestPlacementIsLoggedOnce(t *testing.T) {
	f := newFixture(t)
	f.add(newPod("b", "node-2", 2), newPod("a", "node-1", 1), newPod("c", "", 0))
	f.sync()
	f.wantLines(line("a", "node-1"), line("b", "node-2"))
	f.wantEvents("Normal PodsScheduled 2 Pods were placed on node-1, node-2")

	// Neither a resync nor another process logs a recorded placement again.
	f.sync()
	f.wantLines()
	f.restart()
	f.add(newPod("c", "node-3", 3))
	f.sync()
	f.wantLines(line("c", "node-3"))
	f.wantEvents("Normal PodsScheduled Pod c was placed on node-3")

	// A deleted Pod is forgotten. A re-created one is a new Pod.
	f.remove(newPod("a", "node-1", 1))
	f.sync()
	f.wantLines()
	f.wantEvents()
	f.add(newPod("a", "node-1", 4, withUID("uid-recreated")))
	f.sync()
	f.wantLines(line("a", "node-1"))
	f.wantEvents("Normal PodsScheduled Pod a was placed on node-1")
}

func TestRefusedRecordIsNotLoggedAgain(t *testing.T) {
	f := newFixture(t)
	refused := true
	conflict := apierrors.NewConflict(icecreamv1alpha1.Resource("icecreams"), "example", errors.New("changed"))
	f.refuse(&refused, conflict)
	f.add(newPod("a", "node-1", 1))
	try := func() {
		t.Helper()
		if _, err := f.apply(); !errors.Is(err, conflict) {
			t.Fatalf("apply() = %v, want %v", err, conflict)
		}
	}
	try()
	f.wantLines(line("a", "node-1")) // before it is recorded, so that it is not lost
	f.add(newPod("b", "node-1", 2))
	try()
	f.wantLines(line("b", "node-1"))
	try()
	f.wantLines()
	f.wantEvents("Normal PodsScheduled Pod a was placed on node-1", "Normal PodsScheduled Pod b was placed on node-1")

	// Only a process that ended in between may log lines again.
	f.restart()
	try()
	f.wantLines(line("a", "node-1"), line("b", "node-1"))
	f.wantEvents("Normal PodsScheduled 2 Pods were placed on node-1")

	refused = false
	f.sync()
	f.wantLines()
	f.wantEvents()
	f.wantPlacements(placement("a", "node-1", 1), placement("b", "node-1", 2))
}

func TestRecreatedIcecreamHasItsOwnLines(t *testing.T) {
	f := newFixture(t)
	first, second := f.icecream(), f.icecream()
	second.UID = "uid-another"
	placed := []icecreamv1alpha1.Placement{placement("a", "node-1", 1)}
	f.kind.log.sync(first, placed, nil)
	f.kind.log.sync(second, placed, nil)
	f.wantLines(line("a", "node-1"), line("a", "node-1"))
}

// Only placements that the status does not record are remembered.
func TestOnlyUnrecordedPlacementsAreRemembered(t *testing.T) {
	f := newFixture(t)
	remembered := func(want int) {
		t.Helper()
		if n := f.kind.log.unrecorded.Len(); n != want {
			t.Errorf("%d Icecreams remembered, want %d", n, want)
		}
	}
	f.add(newPod("a", "node-1", 1))
	f.sync()
	f.sync() // the cache has the record now
	remembered(0)
	f.add(manyPods(0, 501)...)
	f.sync()
	f.sync()
	remembered(1)
	f.kind.log.forget(f.icecream())
	remembered(0)
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
