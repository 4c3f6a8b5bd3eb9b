// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package icecream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A finished Pod is not recorded. So its missing record does not show that it was not logged.
func TestFinishedPodIsLoggedOnce(t *testing.T) {
	a, failed := newPod("a", "node-1", 1), newPod("a", "node-1", 1, inPhase(corev1.PodFailed))
	add := func(f *fixture) { f.add(a) }
	stop := func(f *fixture) { f.add(newPod("a", "node-1", 1, terminating)) }
	fail := func(f *fixture) { f.add(failed) }
	finish := func(f *fixture) { fail(f); f.kind.finished(failed) }
	remove := func(f *fixture) { f.remove(a) }
	sync := func(f *fixture) { f.sync() }
	for name, test := range map[string]struct {
		steps []func(*fixture)
		want  int // lines
	}{
		"it failed before it was logged":           {[]func(*fixture){add, finish}, 1},
		"it is recorded":                           {[]func(*fixture){add, sync, sync, finish}, 1},
		"the record is not yet cached":             {[]func(*fixture){add, sync, finish}, 1},
		"its record is removed before the event":   {[]func(*fixture){add, sync, sync, fail, sync, sync, finish}, 1},
		"it was logged, but not recorded":          {[]func(*fixture){refusedRecord, finish}, 1},
		"it was deleted, then it ended":            {[]func(*fixture){add, sync, stop, sync, finish}, 1},
		"it failed, then its label was restored":   {[]func(*fixture){add, finish, sync, remove, sync, fail, sync}, 1},
		"it failed, and another process leads":     {[]func(*fixture){add, sync, finish, sync, (*fixture).restart}, 1},
		"another process leads, and it fails":      {[]func(*fixture){add, sync, sync, (*fixture).restart, finish}, 1},
		"it failed before a process first sees it": {[]func(*fixture){fail}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync()
			lines := 0
			step := func(do func(*fixture)) {
				do(f)
				lines += len(f.lines())
			}
			for _, do := range test.steps {
				step(do)
			}
			step(sync)
			step(sync)
			f.wantPlacements()
			step(remove)
			step(func(f *fixture) { f.kind.departed(failed) })
			step(sync)
			if lines != test.want {
				t.Errorf("%d lines, want %d", lines, test.want)
			}
		})
	}
}
