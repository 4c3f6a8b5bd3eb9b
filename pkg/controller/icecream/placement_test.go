// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

func TestPlace(t *testing.T) {
	type placements = []icecreamv1alpha1.Placement
	for name, test := range map[string]struct {
		current placements
		below   []*pods.Record
		exists  string // which other Pods exist
		want    placements
	}{
		"no Pods": {},
		"a Pod without a node": {
			below: []*pods.Record{newPod("a", "", 1)},
		},
		"a new Pod": {
			below: []*pods.Record{newPod("a", "node-1", 1)},
			want:  placements{placement("a", "node-1", 1)},
		},
		"ordered by time, then UID": {
			below: []*pods.Record{newPod("a", "n", 3), newPod("c", "n", 2), newPod("d", "n", 1), newPod("b", "n", 2)},
			want:  placements{placement("d", "n", 1), placement("b", "n", 2), placement("c", "n", 2), placement("a", "n", 3)},
		},
		"another Pod": {
			current: placements{placement("a", "n", 1)},
			below:   []*pods.Record{newPod("b", "n", 2), newPod("a", "n", 1)},
			want:    placements{placement("a", "n", 1), placement("b", "n", 2)},
		},
		"one Pod gone": {
			current: placements{placement("a", "n", 1), placement("b", "n", 2)},
			below:   []*pods.Record{newPod("b", "n", 2)},
			want:    placements{placement("b", "n", 2)},
		},
		"one Pod failed, one succeeded": {
			current: placements{placement("a", "n", 1), placement("b", "n", 2), placement("c", "n", 3)},
			below: []*pods.Record{newPod("a", "n", 1), newPod("b", "n", 2, inPhase(corev1.PodFailed)),
				newPod("c", "n", 3, inPhase(corev1.PodSucceeded))},
			want: placements{placement("a", "n", 1)},
		},
		"one Pod terminating": {
			current: placements{placement("a", "n", 1)},
			below:   []*pods.Record{newPod("a", "n", 1, terminating), newPod("b", "n", 2, terminating)},
			want:    placements{placement("a", "n", 1), placement("b", "n", 2)},
		},
		"all Pods gone": {current: placements{placement("a", "n", 1)}},
		"one Pod orphaned": {
			current: placements{placement("a", "n", 1), placement("b", "n", 2), placement("c", "n", 3)},
			below:   []*pods.Record{newPod("a", "n", 1)},
			exists:  "uid-b",
			want:    placements{placement("a", "n", 1), placement("b", "n", 2)},
		},
		"re-created with the same name and node": {
			current: placements{placement("a", "n", 1)},
			below:   []*pods.Record{newPod("a", "n", 1, withUID("uid-again"))},
			want:    placements{{PodUID: "uid-again", Pod: "a", Node: "n", Time: placement("", "", 1).Time}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // caches are unordered
				rand.Shuffle(len(test.below), func(i, j int) { test.below[i], test.below[j] = test.below[j], test.below[i] })
				got, orphaned := mergePlacements(test.current, test.below, func(p icecreamv1alpha1.Placement) bool {
					own := slices.ContainsFunc(test.below, func(pod *pods.Record) bool { return pod.Facts().UID() == p.PodUID })
					return own || string(p.PodUID) == test.exists
				})
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("unexpected placements (-want +got):\n%s", diff)
				}
				if orphaned.Len() != min(1, len(test.exists)) || test.exists != "" && !orphaned.Has(types.UID(test.exists)) {
					t.Errorf("orphaned = %v, want %q", orphaned, test.exists)
				}
			}
		})
	}
}

func TestNewestPlacementsAreRecorded(t *testing.T) {
	for name, test := range map[string]struct{ below, records, omitted int }{
		"none":                 {0, 0, 0},
		"as many as the limit": {500, 500, 0},
		"one more":             {501, 500, 1},
		"many more":            {600, 500, 100},
	} {
		t.Run(name, func(t *testing.T) {
			placements, _ := mergePlacements(nil, manyPods(0, test.below), nil)
			records, omitted := newest(placements)
			if len(records) != test.records || int(omitted) != test.omitted {
				t.Fatalf("%d records, %d omitted; want %d, %d", len(records), omitted, test.records, test.omitted)
			}
			if test.below == 0 {
				return
			}
			if first, last := records[0].Pod, records[len(records)-1].Pod; first != podName(test.omitted) ||
				last != podName(test.below-1) {
				t.Errorf("recorded %s to %s, want %s to %s", first, last, podName(test.omitted), podName(test.below-1))
			}
		})
	}
}

// Evicted Pods of a full node stay until there are thousands of them.
func TestFinishedPodsLeaveRoomForRunningPod(t *testing.T) {
	below := []*pods.Record{newPod("running", "node-1", 0)}
	for i := range 560 {
		below = append(below, newPod(podName(i), "node-2", i+1, inPhase(corev1.PodFailed)))
	}
	placements, _ := mergePlacements(nil, below, nil)
	records, omitted := newest(placements)
	if diff := cmp.Diff([]icecreamv1alpha1.Placement{placement("running", "node-1", 0)}, records); diff != "" || omitted > 0 {
		t.Errorf("%d records left out, unexpected records (-want +got):\n%s", omitted, diff)
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%03d", i) }

// manyPods returns Pods by number. Three are placed in each second.
func manyPods(first, end int) []*pods.Record {
	var many []*pods.Record
	for i := first; i < end; i++ {
		many = append(many, newPod(podName(i), "node-1", i/3))
	}
	return many
}
