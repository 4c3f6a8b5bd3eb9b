// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

func TestPlace(t *testing.T) {
	type placements = []icecreamv1alpha1.Placement
	for name, test := range map[string]struct {
		current        placements
		currentOmitted int32
		pods           []*podrecord.Record
		want           placements
		wantPlaced     placements
	}{
		"no Pods": {},
		"a Pod that is not placed": {
			pods: []*podrecord.Record{newPod("a", "", 1)},
		},
		"a new one": {
			pods: []*podrecord.Record{newPod("a", "node-1", 1)},
			want: placements{placement("a", "node-1", 1)}, wantPlaced: placements{placement("a", "node-1", 1)},
		},
		"by time, then by UID": {
			pods:       []*podrecord.Record{newPod("a", "n", 3), newPod("c", "n", 2), newPod("d", "n", 1), newPod("b", "n", 2)},
			want:       placements{placement("d", "n", 1), placement("b", "n", 2), placement("c", "n", 2), placement("a", "n", 3)},
			wantPlaced: placements{placement("d", "n", 1), placement("b", "n", 2), placement("c", "n", 2), placement("a", "n", 3)},
		},
		"one more": {
			current: placements{placement("a", "n", 1)},
			pods:    []*podrecord.Record{newPod("b", "n", 2), newPod("a", "n", 1)},
			want:    placements{placement("a", "n", 1), placement("b", "n", 2)}, wantPlaced: placements{placement("b", "n", 2)},
		},
		"one more that is older than all": {
			current: placements{placement("b", "n", 2)},
			pods:    []*podrecord.Record{newPod("b", "n", 2), newPod("a", "n", 1)},
			want:    placements{placement("a", "n", 1), placement("b", "n", 2)}, wantPlaced: placements{placement("a", "n", 1)},
		},
		"one is gone": {
			current: placements{placement("a", "n", 1), placement("b", "n", 2)},
			pods:    []*podrecord.Record{newPod("b", "n", 2)},
			want:    placements{placement("b", "n", 2)},
		},
		"all are gone": {current: placements{placement("a", "n", 1)}},
		"created anew under its name, on its node": {
			current: placements{placement("a", "n", 1)},
			pods:    []*podrecord.Record{newPod("a", "n", 1, withUID("uid-anew"))},
			want:    placements{{PodUID: "uid-anew", Pod: "a", Node: "n", Time: placement("", "", 1).Time}}, wantPlaced: placements{{PodUID: "uid-anew", Pod: "a", Node: "n", Time: placement("", "", 1).Time}},
		},
		// What is not recorded may have been, while some were left out.
		"older than the oldest record while some are left out": {
			current: placements{placement("b", "n", 2)}, currentOmitted: 1,
			pods: []*podrecord.Record{newPod("a", "n", 1), newPod("b", "n", 2), newPod("c", "n", 3)},
			want: placements{placement("a", "n", 1), placement("b", "n", 2), placement("c", "n", 3)}, wantPlaced: placements{placement("c", "n", 3)},
		},
		"as old as the oldest record while some are left out": {
			current: placements{placement("b", "n", 2)}, currentOmitted: 1,
			pods: []*podrecord.Record{newPod("a", "n", 2), newPod("b", "n", 2), newPod("c", "n", 2)},
			want: placements{placement("a", "n", 2), placement("b", "n", 2), placement("c", "n", 2)}, wantPlaced: placements{placement("c", "n", 2)},
		},
		"a record that says nothing but that some were left out": {
			currentOmitted: 1,
			pods:           []*podrecord.Record{newPod("a", "n", 1)},
			want:           placements{placement("a", "n", 1)}, wantPlaced: placements{placement("a", "n", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // caches have no order
				rand.Shuffle(len(test.pods), func(i, j int) { test.pods[i], test.pods[j] = test.pods[j], test.pods[i] })
				records, omitted, placed := place(test.current, test.currentOmitted, test.pods)
				if diff := cmp.Diff(test.want, records); diff != "" {
					t.Errorf("unexpected records (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.wantPlaced, placed); diff != "" {
					t.Errorf("unexpected new ones (-want +got):\n%s", diff)
				}
				if omitted != 0 {
					t.Errorf("%d omitted, want none", omitted)
				}
			}
		})
	}
}

func TestPlaceRecordsTheNewest(t *testing.T) {
	for name, test := range map[string]struct{ pods, records, omitted int }{
		"as many as a status holds": {500, 500, 0},
		"one more":                  {501, 500, 1},
		"many more":                 {600, 500, 100},
	} {
		t.Run(name, func(t *testing.T) {
			records, omitted, placed := place(nil, 0, manyPods(0, test.pods))
			if len(records) != test.records || int(omitted) != test.omitted || len(placed) != test.pods {
				t.Fatalf("%d records, %d omitted, %d new; want %d, %d, %d", len(records), omitted, len(placed), test.records, test.omitted, test.pods)
			}
			if first, last := records[0].Pod, records[len(records)-1].Pod; first != podName(test.omitted) || last != podName(test.pods-1) {
				t.Errorf("recorded are %s to %s, want %s to %s", first, last, podName(test.omitted), podName(test.pods-1))
			}
		})
	}
}

// 600 Pods come and go, and whenever a status is written another process goes on.
func TestNoPodIsPlacedTwiceBeyondTheLimit(t *testing.T) {
	var current []icecreamv1alpha1.Placement
	var omitted int32
	seen := map[string]int{}
	live := manyPods(0, 400)
	for i, step := range []struct {
		change      func()
		wantOmitted int32
	}{
		{func() {}, 0},
		{func() { live = append(live, manyPods(400, 600)...) }, 100},
		{func() {}, 100},
		{func() { live = live[100:] }, 0}, // the oldest go
		{func() { live = append(live, manyPods(600, 750)...) }, 150}, // and as many as were come
		{func() { live = live[:len(live)-50] }, 100},                 // the newest go, so that older ones return to the record
		{func() { live = live[:len(live)-200] }, 0},
		{func() { live = append(live, manyPods(750, 760)...) }, 0},
	} {
		step.change()
		var placed []icecreamv1alpha1.Placement
		current, omitted, placed = place(slices.Clone(current), omitted, live)
		if omitted != step.wantOmitted || len(current)+int(omitted) != len(live) {
			t.Errorf("step %d: %d records and %d omitted of %d, want %d omitted", i, len(current), omitted, len(live), step.wantOmitted)
		}
		for _, p := range placed {
			seen[p.Pod]++
		}
	}
	for i := range 760 {
		if n := seen[podName(i)]; n != 1 {
			t.Errorf("%s was placed %d times, want once", podName(i), n)
		}
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%03d", i) }

// manyPods returns Pods by number, three placed in each second.
func manyPods(first, end int) []*podrecord.Record {
	var pods []*podrecord.Record
	for i := first; i < end; i++ {
		pods = append(pods, newPod(podName(i), "node-1", i/3))
	}
	return pods
}

func TestWhatIsToBeRecordedIsExplained(t *testing.T) {
	f := newFixture(t)
	f.sync()
	explain := func(wanted, actual string) {
		t.Helper()
		facts, err := f.kind.Facts(f.icecream())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]controller.Fact{controller.NewFact("recorded placements", wanted, actual)}, facts); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	}
	explain("0", "0")
	f.add(newPod("a", "node-1", 1))
	explain("1", "0")
	f.sync()
	explain("1", "1")
	for i := range maxPlacements {
		f.add(newPod(fmt.Sprintf("later-%d", i), "node-2", i+2))
	}
	explain("500, and 1 older ones left out", "1")
}
