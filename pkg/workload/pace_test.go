// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// countWrites makes 30 changes within 3 seconds. It returns the number of status writes.
func (e env) countWrites(change func(i int)) (written int) {
	e.t.Helper()
	for i := range 30 {
		change(i)
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // a write may be due just now
	for _, w := range e.Writes() {
		if w == patchStatus {
			written++
		}
	}
	return written
}

func TestProgressIsWrittenOnceASecond(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(example(withReplicas(40)))
		e.Settle()
		// During this rollout the Deployment changes ten times a second.
		written := e.countWrites(func(i int) { e.rollOut(available(int32(i))) })
		// Four writes, each a second after the other, just fit into the 3.02 s.
		if written < 2 || written > 4 {
			t.Errorf("%d status writes in 3 s, want 2 to 4", written)
		}
		e.rollOut(ready)
		e.pass(0)
		e.wantWrites(patchStatus)
		e.wantEvents(synced)
	})
}

func TestQuicklyReadyObjectGetsOneStatus(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(example())
		e.Settle()
		time.Sleep(400 * time.Millisecond)
		e.wantWrites(createDeployment)
		e.rollOut(ready)
		e.pass(time.Minute)
		e.wantWrites(patchStatus)
	})
}

// TestStatusOfEarlierGenerationWaits has a status with the generation of an earlier spec.
func TestStatusOfEarlierGenerationWaits(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.change(withReplicas(2))
		time.Sleep(900 * time.Millisecond)
		e.wantWrites(patchDeployment)
		e.pass(time.Second)
		e.wantWrites(patchStatus)
	})
}

func TestLossOfReadinessIsReportedAtOnce(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.rollOut(available(0))
		time.Sleep(100 * time.Millisecond)
		e.wantWrites(patchStatus)
	})
}

// TestRevertedProgressIsNotWritten reverts progress before its status is written. The next change is delayed by
// a whole second again.
func TestRevertedProgressIsNotWritten(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(example(withReplicas(3)))
		e.pass(time.Minute)
		e.forget()
		before := e.deployment().Status
		e.rollOut(available(1))
		time.Sleep(500 * time.Millisecond)
		e.rollOut(func(d *appsv1.Deployment) { d.Status = before })
		e.pass(time.Minute)
		e.wantWrites()
		e.rollOut(available(1))
		time.Sleep(900 * time.Millisecond)
		e.wantWrites()
		e.pass(time.Second)
		e.wantWrites(patchStatus)
	})
}

// TestCountsOfStalledObjectAreWrittenOnceASecond has a Deployment that has timed out, and whose Pods come and go.
func TestCountsOfStalledObjectAreWrittenOnceASecond(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.Create(example(withReplicas(40)))
		e.Settle()
		written := e.countWrites(func(i int) {
			e.rollOut(func(d *appsv1.Deployment) {
				timedOut(d)
				d.Status.AvailableReplicas = int32(i)
			})
		})
		if written < 2 || written > 5 {
			t.Errorf("%d status writes in 3 s, want 2 to 5", written)
		}
		e.wantEvents(`Warning ProgressDeadlineExceeded Deployment "example-web": timed out`)
	})
}

// TestFlappingObjectIsWrittenOnceASecond changes the readiness of a Pod ten times a second.
func TestFlappingObjectIsWrittenOnceASecond(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		written := e.countWrites(func(i int) { e.rollOut(available(int32(i % 2))) })
		if written < 3 || written > 5 {
			t.Errorf("%d status writes in 3 s, want 3 to 5", written)
		}
		if events := e.Events(); len(events) > 3 || slices.ContainsFunc(events,
			func(event string) bool { return event != synced }) {
			t.Errorf("Events %q in 3 s, want at most 3", events)
		}
		e.rollOut(ready)
		e.pass(time.Second)
		if e.condition("Ready").Status != "True" {
			t.Error("the last state is not in the status")
		}
	})
}
