// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import "testing"

func TestAPodThatIsGoneIsLoggedIfItWasNot(t *testing.T) {
	gone := placement("a", "node-1", 1)
	for name, test := range map[string]struct {
		before func(*fixture) // the Pod departs
		want   []string
	}{
		"it came and went unnoticed": {func(*fixture) {}, []string{line("a", "node-1")}},
		"it is recorded": {func(f *fixture) {
			f.add(newPod("a", "node-1", 1))
			f.sync()
			f.remove(newPod("a", "node-1", 1))
		}, nil},
		"its record is gone already": {func(f *fixture) {
			f.add(newPod("a", "node-1", 1))
			f.sync()
			f.remove(newPod("a", "node-1", 1))
			f.sync()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync()
			test.before(f)
			f.lines()
			f.forgetEvents()
			f.kind.log.depart("uid-example", gone)
			f.sync()
			f.wantLines(test.want...)
			if len(test.want) > 0 {
				f.wantEvents("Normal PodsScheduled Pod a was placed on node-1")
			}
			f.wantPlacements()
			if f.sync() {
				t.Error("it was written again, unchanged")
			}
			f.wantLines()
			f.wantEvents()
		})
	}
}

// forgetEvents forgets the Events so far.
func (f *fixture) forgetEvents() {
	for len(f.events.Events) > 0 {
		<-f.events.Events
	}
}
