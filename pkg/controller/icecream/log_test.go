// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"

	"samplecontroller.io/sample-controller-manager/pkg/pods"
)

// process is the memory of one process. icecream is as the API server has it.
type process struct {
	*placementLog
	output   *syncedBuffer
	icecream *icecreamv1alpha1.Icecream
}

func newProcess() *process {
	p := &process{icecream: example()}
	p.icecream.UID = "uid-example"
	p.restart()
	return p
}

// restart continues with another process.
func (p *process) restart() {
	p.output = &syncedBuffer{}
	p.placementLog = newPlacementLog(loggerTo(p.output), record.NewFakeRecorder(100))
	p.setLeading(true)
}

// call is a call for the Icecream, which has the given Pods. It returns the number of lines.
func (p *process) call(below []*pods.Record, written bool) int {
	none := func(icecreamv1alpha1.Placement) bool { return false }
	all, orphaned := mergePlacements(p.icecream.Status.Placements, below, none)
	p.sync(p.icecream, "web", all, orphaned)
	if written {
		p.icecream.Status.Placements, p.icecream.Status.PlacementsOmitted = newest(all)
	}
	return len(p.output.lines())
}

func (p *process) ends(pod *pods.Record) {
	key := cache.MetaObjectToName(p.icecream)
	p.end(key, ended{icecream: "uid-example", deployment: "web", placement: placementOf(pod)})
}

func TestRefusedRecordIsNotLoggedAgain(t *testing.T) {
	p, ab := newProcess(), []*pods.Record{newPod("a", "node-1", 1), newPod("b", "node-1", 2)}
	want := []int{1, 1, 0, 2, 0, 0}
	got := []int{p.call(ab[:1], false), p.call(ab, false), p.call(ab, false)}
	p.restart() // it does not know
	if got = append(got, p.call(ab, false), p.call(ab, true), p.call(ab, true)); !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	if n := len(p.byKey); n > 0 {
		t.Errorf("%d Icecreams remembered once all is recorded, want none", n)
	}
}

func TestNewProcessLogsUnrecordedPodsAgain(t *testing.T) {
	p := newProcess()
	got := []int{p.call(manyPods(0, 503), true), p.call(manyPods(0, 503), true)}
	p.restart()
	got = append(got, p.call(manyPods(0, 503), true), p.call(manyPods(0, 503), true))
	if want := []int{503, 0, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	p.forget(cache.MetaObjectToName(p.icecream))
	if n := len(p.byKey); n > 0 {
		t.Errorf("%d Icecreams remembered after the last is gone, want none", n)
	}
}

func TestRecreatedIcecreamHasItsOwnLines(t *testing.T) {
	p, a := newProcess(), []*pods.Record{newPod("a", "node-1", 1)}
	first := p.call(a, false)
	p.ends(newPod("b", "node-1", 2)) // of the first one
	p.icecream.UID = "uid-another"
	if second := p.call(a, false); first != 1 || second != 1 {
		t.Errorf("%d and %d lines, want 1 each", first, second)
	}
}

// Nothing is synced while they end, and later ones are dropped.
func TestTenThousandPodsEnd(t *testing.T) {
	p, many := newProcess(), manyPods(0, maxGone+1)
	for _, pod := range many {
		p.ends(pod)
	}
	if got := p.call(nil, true); got != maxGone {
		t.Errorf("%d lines, want %d", got, maxGone)
	}
	for _, pod := range many[:maxGone] {
		p.ends(pod)
	}
	if got := p.call(nil, true); got != 0 {
		t.Errorf("%d lines again, want none", got)
	}
}

func TestEndOfTermForgetsEndedPods(t *testing.T) {
	p, a := newProcess(), newPod("a", "node-1", 1)
	p.ends(a)
	p.setLeading(false)
	p.ends(a)
	p.setLeading(true)
	if got := p.call(nil, true); got != 0 {
		t.Errorf("%d lines, want none", got)
	}
}

func TestPodWithoutChainEnqueuesWhatRecordsIt(t *testing.T) {
	p, key := newProcess(), cache.NewObjectName("default", "example")
	p.sync(p.icecream, "web", nil, sets.New(placement("a", "node-1", 1).PodUID))
	if got := p.recordedBy("uid-a"); !slices.Equal(got, []cache.ObjectName{key}) || len(p.recordedBy("uid-b")) > 0 {
		t.Errorf("recordedBy() = %v, want %v, and none for another Pod", got, key)
	}
	if p.forget(key); len(p.recordedBy("uid-a")) > 0 {
		t.Error("the forgotten Icecream is enqueued")
	}
}

// batch returns Pods that were placed in the same second.
func batch(first, end, second int) []*pods.Record {
	var same []*pods.Record
	for i := first; i < end; i++ {
		same = append(same, newPod(podName(i), "node-1", second))
	}
	return same
}

func TestEachPodIsLoggedOnceBeyondLimit(t *testing.T) {
	type step struct{ add, remove []*pods.Record }
	for name, steps := range map[string][]step{
		"in the same second":                        {{add: batch(500, 1000, 1)}, {add: batch(0, 500, 1)}},
		"by an API server with a slow clock":        {{add: batch(0, 600, 10)}, {add: batch(600, 700, 9)}},
		"older ones of a late adopted ReplicaSet":   {{add: batch(0, 600, 10)}, {add: batch(600, 700, 1)}},
		"newest deleted, older ones recorded again": {{add: manyPods(0, 700)}, {remove: manyPods(600, 700)}, {remove: manyPods(200, 600)}},
		"oldest deleted, as many added":             {{add: manyPods(0, 600)}, {remove: manyPods(0, 100)}, {add: manyPods(600, 700)}},
		"all deleted, then filled again":            {{add: manyPods(0, 600)}, {remove: manyPods(0, 600)}, {add: manyPods(600, 1300)}},
		"one by one around the limit":               {{add: manyPods(0, 499)}, {add: manyPods(499, 500)}, {add: manyPods(500, 501)}},
	} {
		t.Run(name, func(t *testing.T) {
			p, below := newProcess(), []*pods.Record(nil)
			for i, s := range steps {
				below = append(below, s.add...)
				for _, gone := range s.remove {
					below = slices.DeleteFunc(below, func(pod *pods.Record) bool { return pod.GetName() == gone.GetName() })
					p.ends(gone)
				}
				if lines, again := p.call(below, true), p.call(below, true); lines != len(s.add) || again != 0 {
					t.Errorf("step %d: %d lines, then %d; want %d, then none", i, lines, again, len(s.add))
				}
			}
		})
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
