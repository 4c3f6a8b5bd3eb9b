// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
	"samplecontroller.io/sample-controller-manager/hack/e2e/isolation/faulty"
)

// With a timeout of a second a sync is too long after two, and stuck after ten.
const (
	faultySyncTimeout = time.Second
	faultyTooLong     = 2 * faultySyncTimeout
	faultyStuck       = 10 * faultySyncTimeout
)

// faultLasts is how long a fault is left to do what it does: so long that a second line
// of the log for each of its causes is due.
const faultLasts = 11 * time.Second

// Backing off from 5 ms by doubling, a key is synced 13 times in the first 20 seconds and
// 15 times in the first minute. That it was made, and is repaired, enqueues it once more each.
const mostSyncs = 13 + 2

// noOneToCompare is why there is no peer: which programs host several controllers and
// could be told to go wrong?
const noOneToCompare = "n/a: sample-controller hosts one controller"

// TestFaultInOneController has one of the controllers of a daemon do what a controller
// must not. It shows there, nowhere else, and goes when the fault does.
func TestFaultInOneController(t *testing.T) {
	framework.FreeLease(t)
	allowFaulty(t)
	ns := framework.NewNamespace(t)
	token := framework.DebuggerToken(t, ns)
	leader := startFaulty(t, ns, token, "--sync-timeout="+faultySyncTimeout.String())
	framework.WaitLeader(t, "")
	standby := startFaulty(t, ns, token, "--sync-timeout="+faultySyncTimeout.String())
	leader.serveOne()
	before := leader.othersServe()
	t.Logf("without a fault the others serve a Foo and an Icecream in %v", before)
	wantHealthy(leader.Replica) // idle
	wantHealthy(standby.Replica)

	t.Run("syncs panic", func(t *testing.T) { leader.in(t).syncsFail("panic", "panic", "Sync panicked") })
	t.Run("syncs hang", func(t *testing.T) { leader.in(t).syncsFail("hang", "timeout", "Sync took too long") })
	t.Run("a sync is stuck", func(t *testing.T) { leader.in(t).syncIsStuck(standby) })
	t.Run("Run ends", func(t *testing.T) { leader.in(t).runEnds() })
	t.Run("event handler panics", func(t *testing.T) { leader.in(t).handlerPanics() })
	t.Run("event handler is slow", func(t *testing.T) { leader.in(t).handlerIsSlow() })
	wantHealthy(standby.Replica)
	standby.Stop()
	leader.Stop()
}

// syncsFail has the syncs of nine objects fail, so that one of the ten workers is free
// even if they hang.
func (r *faultyReplica) syncsFail(fault, result, message string) {
	const poisoned = 9
	began, syncs, logged := time.Now(), r.syncs(result), strings.Count(r.Log.String(), message)
	for i := range poisoned {
		r.poison(fmt.Sprintf("%s-%d", fault, i), fault)
	}
	var served []time.Duration
	var others time.Duration
	for time.Since(began) < faultLasts {
		served = append(served, r.serveOne())
		others = max(others, r.othersServe())
	}
	slices.Sort(served)
	lasted := time.Since(began)
	syncs, logged = r.syncs(result)-syncs, strings.Count(r.Log.String(), message)-logged
	if most := poisoned * mostSyncs; syncs < poisoned || lasted < 20*time.Second && syncs > most {
		r.T.Errorf("%d syncs of %d objects in %v, want at least one each and at most %d", syncs, poisoned, lasted, most)
	}
	// What is said of one cause about one object is said once in 10 s.
	if most := poisoned * (1 + int(lasted/(10*time.Second))); logged < poisoned || logged > most {
		r.T.Errorf("%d lines in %v, want at least %d and at most %d", logged, lasted, poisoned, most)
	}
	// One that waited for a poisoned one would wait for its timeout.
	if median := served[len(served)/2]; median > faultySyncTimeout/2 {
		r.T.Errorf("the other objects of the controller are served in %v in the median, want at most %v", median, faultySyncTimeout/2)
	}
	if got := r.failingObjects(); got != poisoned {
		r.T.Errorf("%d objects are counted that fail, want %d", got, poisoned)
	}
	wantHealthy(r.Replica) // for they back off, and others are served
	var repaired time.Duration
	for i := range poisoned {
		repaired = max(repaired, r.repair(fmt.Sprintf("%s-%d", fault, i)))
	}
	clustertest.WaitUntil(r.T, "no object fails", func(context.Context) error {
		if got := r.failingObjects(); got != 0 {
			return fmt.Errorf("%d do", got)
		}
		return nil
	})
	id := map[string]string{"panic": "D1", "hang": "D2"}[fault]
	framework.ReportFault(r.T, framework.FaultRow{ID: id, Fault: fmt.Sprintf("%d objects of one controller: each sync is a %s", poisoned, result),
		Ours: fmt.Sprintf("in %v %d syncs and %d lines; its other objects served in %v at most, a Foo and an Icecream ready in %v; after the repair: %v",
			lasted.Round(time.Second), syncs, logged, round(slices.Max(served)), round(others), round(repaired)), Peer: noOneToCompare})
}

// syncIsStuck has a sync not heed its context. That is told first by the controller's
// check, then by liveness, since only a restart would cure it.
func (r *faultyReplica) syncIsStuck(standby *faultyReplica) {
	began := time.Now()
	r.poison("stuck", "stuck")
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	unhealthy := time.Since(began)
	r.waitTold(r.ns + "/stuck is being synced since ")
	r.WantLive(r.T.Context())
	served, others := r.serveOne(), r.othersServe()
	waitFailing(r.Replica, "/livez", "stuck-syncs")
	stuck := time.Since(began)
	if unhealthy < faultyTooLong || stuck < faultyStuck {
		r.T.Errorf("/healthz failed for a stuck sync after %v and /livez after %v, want not before %v and %v", unhealthy, stuck, faultyTooLong, faultyStuck)
	}
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	wantHealthy(standby.Replica)
	r.repair("stuck")
	waitFailing(r.Replica, "/healthz")
	wantHealthy(r.Replica)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2", Fault: "one sync of one controller never ends (--sync-timeout=1s)",
		Ours: fmt.Sprintf("/healthz names it after %v, /livez after %v; its other objects served in %v, a Foo and an Icecream ready in %v",
			round(unhealthy), round(stuck), round(served), round(others)), Peer: noOneToCompare})
}

// runEnds has the Run of the controller fail, then panic.
func (r *faultyReplica) runEnds() {
	const message = `"Starting controller" controller="` + faulty.ControllerName
	began, starts := time.Now(), strings.Count(r.Log.String(), message)
	r.poison("run", "fail")
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	r.waitTold("the controller fails")
	r.WantLive(r.T.Context())
	r.poison("run", "crash")
	r.waitTold("panic: the controller crashes")
	others := r.othersServe()
	r.WantLive(r.T.Context())
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	repaired := r.repair("run")
	waitFailing(r.Replica, "/healthz")
	wantHealthy(r.Replica)
	lasted := time.Since(began)
	starts = strings.Count(r.Log.String(), message) - starts
	// After a second, two, four...
	if most := 1 + int(lasted/(2*time.Second)); starts < 2 || starts > most {
		r.T.Errorf("started again %d times in %v, want at least twice and at most %d times", starts, lasted, most)
	}
	framework.ReportFault(r.T, framework.FaultRow{ID: "D1", Fault: "Run of one controller fails, then panics",
		Ours: fmt.Sprintf("/healthz names it; started again %d times in %v; a Foo and an Icecream ready in %v; after the repair: %v", starts, lasted.Round(time.Second), round(others), round(repaired)), Peer: noOneToCompare})
}

// handlerPanics has a handler of events of Foos panic. The Foos themselves are served by
// the controller whose they are, which has the same informer.
func (r *faultyReplica) handlerPanics() {
	const message, changes = "Event handler panicked", 50
	logged, began := strings.Count(r.Log.String(), message), time.Now()
	framework.Foos.Create(r.T, r.ns, "handler-panics", 1)
	framework.Foos.Patch(r.T, r.ns, "handler-panics", `{"metadata":{"annotations":{"fault":"panic"}}}`)
	for i := range changes {
		if err := framework.Foos.Touch(r.T.Context(), r.ns, "handler-panics", fmt.Sprint(i)); err != nil {
			r.T.Fatal(err)
		}
	}
	framework.Foos.WaitReady(r.T, r.ns, "handler-panics", 1)
	served, others := r.serveOne(), r.othersServe()
	r.WaitLog(message)
	lasted := time.Since(began)
	// Of an event that was made, changed or deleted.
	logged = strings.Count(r.Log.String(), message) - logged
	if most := 2 * (1 + int(lasted/(10*time.Second))); logged > most {
		r.T.Errorf("%d lines in %v, want at most %d", logged, lasted, most)
	}
	wantHealthy(r.Replica)
	r.waitTold("the event handler panics for handler-panics")
	framework.ReportFault(r.T, framework.FaultRow{ID: "D1", Fault: fmt.Sprintf("event handler of one controller panics %d times", changes),
		Ours: fmt.Sprintf("%d lines in %v; its other objects served in %v, a Foo and an Icecream ready in %v", logged, lasted.Round(time.Second), round(served), round(others)), Peer: noOneToCompare})
}

// handlerIsSlow has a handler of events of Foos take a second for each of ten Foos.
func (r *faultyReplica) handlerIsSlow() {
	const slow = 10
	began := time.Now()
	for i := range slow {
		name := fmt.Sprintf("slow-%d", i)
		framework.Foos.Create(r.T, r.ns, name, 0)
		framework.Foos.Patch(r.T, r.ns, name, `{"metadata":{"annotations":{"fault":"slow"}}}`)
	}
	for i := range slow {
		framework.Foos.WaitReady(r.T, r.ns, fmt.Sprintf("slow-%d", i), 0)
	}
	served, others := r.serveOne(), r.othersServe()
	lasted := time.Since(began)
	if lasted > slow*faulty.Delay {
		r.T.Errorf("after %v there may be no event left that is handled slowly, so nothing is shown", lasted)
	}
	wantHealthy(r.Replica)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2", Fault: fmt.Sprintf("event handler of one controller takes %v for each of %d Foos", faulty.Delay, slow),
		Ours: fmt.Sprintf("all of them ready in %v; its other objects served in %v, a Foo and an Icecream ready in %v",
			round(lasted-served-others), round(served), round(others)), Peer: noOneToCompare})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
