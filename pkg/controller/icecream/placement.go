// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// maxPlacements is the limit of placements in the schema of the status.
const maxPlacements = 500

// mergePlacements returns the sorted placements of an Icecream: those of its Pods that are not finished,
// and the recorded ones of other Pods that still exist. The owner chain of those does not lead
// to the Icecream now, but may be restored. orphaned has their UIDs.
func mergePlacements(current []icecreamv1alpha1.Placement, below []*pods.Record,
	exists func(icecreamv1alpha1.Placement) bool) (placements []icecreamv1alpha1.Placement, orphaned sets.Set[types.UID]) {
	own := make(sets.Set[types.UID], len(below))
	for _, pod := range below {
		if pod.Facts().Node() == "" {
			continue
		}
		own.Insert(pod.Facts().UID())
		if !pod.Facts().Finished() {
			placements = append(placements, placementOf(pod))
		}
	}
	orphaned = sets.New[types.UID]()
	for _, p := range current {
		if !own.Has(p.PodUID) && exists(p) {
			placements = append(placements, p)
			orphaned.Insert(p.PodUID)
		}
	}
	slices.SortFunc(placements, compare)
	return placements, orphaned
}

// newest returns the placements to record, and the number of older ones that are left out.
func newest(placements []icecreamv1alpha1.Placement) (records []icecreamv1alpha1.Placement, omitted int32) {
	excess := max(len(placements)-maxPlacements, 0)
	return placements[excess:], int32(excess)
}

func placementOf(pod *pods.Record) icecreamv1alpha1.Placement {
	facts := pod.Facts()
	return icecreamv1alpha1.Placement{
		PodUID: facts.UID(), Pod: pod.GetName(), Node: facts.Node(), Time: metav1.NewTime(facts.Placed()),
	}
}

func podUIDs(placements []icecreamv1alpha1.Placement) sets.Set[types.UID] {
	uids := make(sets.Set[types.UID], len(placements))
	for _, p := range placements {
		uids.Insert(p.PodUID)
	}
	return uids
}

// compare orders placements by time, then by Pod UID.
func compare(a, b icecreamv1alpha1.Placement) int {
	return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.PodUID, b.PodUID))
}
