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

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// maxPlacements is how many placements a status holds, by its schema.
const maxPlacements = 500

// place returns what to record of the Pods: the newest placements, and how many older
// ones are left out. placed are those that are not yet recorded.
func place(current []icecreamv1alpha1.Placement, currentOmitted int32, pods []*podrecord.Record) (records []icecreamv1alpha1.Placement, omitted int32, placed []icecreamv1alpha1.Placement) {
	for _, pod := range pods {
		if pod.Node() != "" {
			records = append(records, placementOf(pod))
		}
	}
	slices.SortFunc(records, compare)
	placed = unrecorded(current, currentOmitted, records)
	if excess := len(records) - maxPlacements; excess > 0 {
		records, omitted = records[excess:], int32(excess)
	}
	return records, omitted, placed
}

// unrecorded returns those of the placements that the current record does not have.
// While that leaves some out, one that is older than all that it has counts as
// recorded.
func unrecorded(current []icecreamv1alpha1.Placement, currentOmitted int32, placements []icecreamv1alpha1.Placement) (placed []icecreamv1alpha1.Placement) {
	recorded := sets.New[types.UID]()
	for _, p := range current {
		recorded.Insert(p.PodUID)
	}
	for _, p := range placements {
		outside := currentOmitted > 0 && len(current) > 0 && compare(p, current[0]) < 0
		if !outside && !recorded.Has(p.PodUID) {
			placed = append(placed, p)
		}
	}
	return placed
}

func placementOf(pod *podrecord.Record) icecreamv1alpha1.Placement {
	return icecreamv1alpha1.Placement{PodUID: pod.UID(), Pod: pod.GetName(), Node: pod.Node(), Time: metav1.NewTime(pod.Placed())}
}

// compare orders placements by time, then by Pod UID.
func compare(a, b icecreamv1alpha1.Placement) int {
	return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.PodUID, b.PodUID))
}
