// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/tolerant"
)

// A Pod may come and go between two syncs of its Icecream.
func TestDeletedPodIsLoggedOnce(t *testing.T) {
	a := newPod("a", "node-1", 1)
	add := func(f *fixture) { f.add(a); f.sync() }
	remove := func(f *fixture) { f.remove(a) }
	sync := func(f *fixture) { f.sync() }
	for name, test := range map[string]struct {
		before []func(*fixture) // the events before its deletion
		want   []string
	}{
		"it came and went":                {nil, []string{line("a", "node-1")}},
		"it is recorded":                  {[]func(*fixture){add, sync, remove}, nil},
		"the record is not yet cached":    {[]func(*fixture){add, remove}, nil},
		"its record is removed already":   {[]func(*fixture){add, remove, sync}, nil},
		"its removal is cached":           {[]func(*fixture){add, remove, sync, sync}, nil},
		"it was logged, but not recorded": {[]func(*fixture){refusedRecord, remove}, nil},
		"another process recorded it":     {[]func(*fixture){add, (*fixture).restart, sync, remove}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync()
			for _, step := range test.before {
				step(f)
			}
			f.lines()
			f.forgetEvents()
			f.kind.departed(a)
			f.wantLines(test.want...)
			if len(test.want) > 0 {
				f.wantEvents("Normal PodsScheduled Pod a was placed on node-1")
			}
			f.sync()
			f.kind.departed(a)
			f.wantLines()
			f.wantEvents()
			f.wantPlacements()
		})
	}
}

// refusedRecord syncs a Pod whose placement is logged but not recorded.
func refusedRecord(f *fixture) {
	refused := true
	f.refuse(&refused, errors.New("refused"))
	f.add(newPod("a", "node-1", 1))
	if _, err := f.apply(); err == nil {
		f.Fatal("the record was not refused")
	}
	refused = false
}

func TestDeparturesWithoutLogLine(t *testing.T) {
	for name, depart := range map[string]func(*fixture){
		"Pod without a node": func(f *fixture) { f.kind.departed(newPod("a", "", 1)) },
		"Pod without an owner chain": func(f *fixture) {
			f.replicaSets.Replace(nil, "")
			f.kind.departed(newPod("a", "node-1", 1))
		},
		"Icecream is gone": func(f *fixture) {
			f.icecreams.Replace(nil, "")
			f.kind.departed(newPod("a", "node-1", 1))
		},
		"Icecream cannot be decoded": func(f *fixture) {
			icecream := f.icecream()
			icecream.Annotations = map[string]string{tolerant.AnnotationDecodeError: "spec.deploymentName: array where string is expected"}
			f.put(f.icecreams, icecream)
			f.kind.departed(newPod("a", "node-1", 1))
		},
		"an earlier Icecream of the same name": func(f *fixture) {
			f.kind.log.departed(cache.NewObjectName("default", "example"), "uid-before", placement("a", "node-1", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync()
			depart(f)
			f.wantLines()
			f.wantEvents()
		})
	}
}

// The owner chain does not lead from such a Pod to the Icecream that records it.
func TestOrphanedPodLeavesRecord(t *testing.T) {
	f := newFixture(t)
	a := newPod("a", "node-1", 1)
	f.add(a)
	f.sync()
	if keys := f.kind.departed(newPod("b", "", 1)); len(keys) > 0 {
		t.Errorf("departed() of another Pod = %v, want none", keys)
	}
	f.replicaSets.Replace(nil, "")
	f.sync()
	f.wantPlacements(placement("a", "node-1", 1))

	f.kind.log.forget(f.icecream())
	if keys := f.kind.departed(a); len(keys) > 0 {
		t.Errorf("departed() = %v once the Icecream is forgotten, want none", keys)
	}
	f.sync()
	f.remove(a)
	if got, want := f.kind.departed(a), []cache.ObjectName{cache.NewObjectName("default", "example")}; !slices.Equal(got, want) {
		t.Errorf("departed() = %v, want %v", got, want)
	}
	f.sync()
	f.wantPlacements()
	if keys := f.kind.departed(a); len(keys) > 0 {
		t.Errorf("departed() = %v once the Pod is not recorded, want none", keys)
	}
	if n := len(f.kind.log.cut); n > 0 {
		t.Errorf("%d Icecreams remembered, want none", n)
	}
}

// forgetEvents drops the Events so far.
func (f *fixture) forgetEvents() {
	for len(f.events.Events) > 0 {
		<-f.events.Events
	}
}
