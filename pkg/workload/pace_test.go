// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// wantSync syncs the example with up-to-date caches. It checks the calls and when the
// example is to be synced again.
func (f *fixture) wantSync(want time.Duration, calls ...string) {
	f.Helper()
	f.observe()
	if requeueAfter, err := f.controller.Sync(f.Context(), key); err != nil || requeueAfter != want {
		f.Errorf("sync() = %v, %v, want %v", requeueAfter, err, want)
	}
	f.wantCalls(calls...)
}

// available sets the number of available replicas in the Deployment's status.
func available(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		ready(d)
		d.Status.AvailableReplicas = n
	}
}

func TestProgressIsWrittenOnceASecond(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		example := kind.example()
		want("example-web", 40)(example)
		f := newFixture(t, kind, example)
		f.wantSync(time.Second, "create deployments")
		// During this rollout the Deployment changes ten times a second.
		written := f.countWrites(func(i int) { f.update(available(int32(i))) })
		if written != 2 { // after 1 s and after 2.1 s
			t.Errorf("%d status writes in 3 s, want 2", written)
		}
		f.update(ready)
		f.wantSync(0, "patch objects/status")
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
	})
}

func TestQuicklyReadyObjectGetsOneStatus(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.wantSync(time.Second, "create deployments")
		f.clock.Step(400 * time.Millisecond)
		f.wantSync(600 * time.Millisecond)
		f.update(ready)
		f.wantSync(0, "patch objects/status")
	})
}

// The status has the generation of an earlier spec.
func TestStatusOfEarlierGenerationWaits(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.change(want("example-web", 2))
		f.wantSync(time.Second, "patch deployments")
		f.clock.Step(time.Second)
		f.wantSync(0, "patch objects/status")
	})
}

func TestLossOfReadinessIsReportedAtOnce(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.update(available(0))
		f.wantSync(0, "patch objects/status")
	})
}

// The object is gone, and the garbage collector has deleted its Deployment. Only the latter
// is in the cache.
func TestObjectWithDelayedStatusIsReadBeforeNextCreate(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.wantSync(workload.StatusDelay, "create deployments")
		if err := f.kube.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("deployments"), key.Namespace, deploymentName); err != nil {
			t.Fatal(err)
		}
		f.wantSync(workload.StatusDelay, "list objects", "create deployments")
	})
}

func TestDelayedStatusIsForgottenWithItsObject(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.wantSync(workload.StatusDelay, "create deployments")
		if !f.controller.Pending(key) {
			t.Error("no status is delayed, want one")
		}
		if err := f.sample.Tracker().Delete(kind.resources(), key.Namespace, key.Name); err != nil {
			t.Fatal(err)
		}
		f.wantSync(0)
		if f.controller.Pending(key) {
			t.Error("the status of a deleted object is delayed")
		}
	})
}

// Progress that is reverted before its status is written needs no status. The next change
// is delayed by a whole second again.
func TestRevertedProgressIsNotWritten(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		example := kind.example()
		want("example-web", 3)(example)
		f := newFixture(t, kind, example)
		f.sync()
		before := f.deployment().Status
		f.update(available(1))
		f.wantSync(workload.StatusDelay)
		f.update(func(d *appsv1.Deployment) { d.Status = before })
		f.wantSync(0)
		f.clock.Step(time.Minute)
		f.update(available(1))
		f.wantSync(workload.StatusDelay)
	})
}

// The Deployment has timed out, and its Pods come and go.
func TestCountsOfStalledObjectAreWrittenOnceASecond(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		example := kind.example()
		want("example-web", 40)(example)
		f := newFixture(t, kind, example)
		f.wantSync(time.Second, "create deployments")
		written := f.countWrites(func(i int) {
			f.update(func(d *appsv1.Deployment) {
				available(int32(i))(d)
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "timed out",
				}}
			})
		})
		if written < 2 || written > 5 {
			t.Errorf("%d status writes in 3 s, want 2 to 5", written)
		}
		f.wantEvents(`Warning ProgressDeadlineExceeded Deployment "example-web": timed out`)
	})
}

// A Pod's readiness changes ten times a second.
func TestFlappingObjectIsWrittenOnceASecond(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		f.serve()
		f.wantEvents("Normal Synced " + kind.Kind + " synced successfully")
		written := f.countWrites(func(i int) { f.update(available(int32(i % 2))) })
		if written < 3 || written > 5 {
			t.Errorf("%d status writes in 3 s, want 3 to 5", written)
		}
		if n := len(f.events.Events); n > 3 {
			t.Errorf("%d Events in 3 s, want at most 3", n)
		}

		// The last state is written in the end.
		f.update(ready)
		f.observe()
		wait, err := f.controller.Sync(f.Context(), key)
		if err != nil || wait > time.Second {
			t.Fatalf("sync() = %v, %v, want a wait of at most a second", wait, err)
		}
		f.clock.Step(wait)
		f.sync()
		if !meta.IsStatusConditionTrue(*statusOf(f.object()).conditions, "Ready") {
			t.Error("the last state is not in the status")
		}
	})
}

// countWrites makes 30 changes within 3 seconds and syncs after each. It returns the number of
// status writes.
func (f *fixture) countWrites(change func(i int)) (written int) {
	f.Helper()
	for i := range 30 {
		change(i)
		f.observe()
		if _, err := f.controller.Sync(f.Context(), key); err != nil {
			f.Fatal(err)
		}
		written += len(f.calls())
		f.clock.Step(100 * time.Millisecond)
	}
	return written
}

// The Deployment of an object with a throttled status is not yet in that status.
func TestThrottledStatusCountsAsHavingDeployment(t *testing.T) {
	overKinds(t, func(t *testing.T, kind kind) {
		f := newFixture(t, kind, kind.example())
		foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deploymentName, Namespace: key.Namespace}}
		if err := f.kube.Tracker().Add(foreign); err != nil {
			t.Fatal(err)
		}
		f.wantSync(0, "patch objects/status") // Stalled
		f.collect()
		f.wantSync(workload.StatusDelay, "create deployments")
		f.collect()
		f.wantSync(workload.StatusDelay, "list objects", "create deployments")
	})
}
