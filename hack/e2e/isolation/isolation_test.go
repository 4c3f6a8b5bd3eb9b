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

// With a sync timeout of a second, a sync counts as too long after two seconds, and as stuck
// after ten.
const (
	faultySyncTimeout = time.Second
	faultyTooLong     = 2 * faultySyncTimeout
	faultyStuck       = 10 * faultySyncTimeout
)

// faultLasts is how long a fault stays. It is so long that each of its causes is due for a
// second log line.
const faultLasts = 11 * time.Second

// With a backoff that doubles from 5 ms, a key is synced 13 times in the first 20 seconds and
// 15 times in the first minute. Its creation and its repair enqueue it once more each.
const mostSyncs = 13 + 2

// noOneToCompare is why there is no peer: no comparable program hosts several controllers and
// can be made to misbehave.
const noOneToCompare = "n/a: sample-controller hosts one controller"

// TestFaultInOneController makes one of the daemon's controllers misbehave. The fault affects
// no other controller, and its effects end with it.
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
	t.Logf("without a fault, a Foo and an Icecream are Ready in %v", before)
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

// syncsFail makes the syncs of nine objects fail, so that one of the ten workers stays free
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
	// The same cause for the same object is logged once in 10 s.
	if most := poisoned * (1 + int(lasted/(10*time.Second))); logged < poisoned || logged > most {
		r.T.Errorf("%d lines in %v, want at least %d and at most %d", logged, lasted, poisoned, most)
	}
	// An object that waited for a poisoned one would wait for its timeout.
	if median := served[len(served)/2]; median > faultySyncTimeout/2 {
		r.T.Errorf("the median sync of the controller's other objects took %v, want at most %v", median, faultySyncTimeout/2)
	}
	if got := r.failingObjects(); got != poisoned {
		r.T.Errorf("%d objects counted as failing, want %d", got, poisoned)
	}
	wantHealthy(r.Replica) // because the failing objects back off, and others are synced
	var repaired time.Duration
	for i := range poisoned {
		repaired = max(repaired, r.repair(fmt.Sprintf("%s-%d", fault, i)))
	}
	clustertest.WaitUntil(r.T, "no object is failing", func(context.Context) error {
		if got := r.failingObjects(); got != 0 {
			return fmt.Errorf("%d are failing", got)
		}
		return nil
	})
	id := map[string]string{"panic": "D1", "hang": "D2"}[fault]
	framework.ReportFault(r.T, framework.FaultRow{ID: id, Fault: fmt.Sprintf("%d objects of one controller: each sync is a %s", poisoned, result),
		Ours: fmt.Sprintf("in %v %d syncs and %d log lines; its other objects synced within %v, a Foo and an Icecream Ready in %v; recovered in %v",
			lasted.Round(time.Second), syncs, logged, round(slices.Max(served)), round(others), round(repaired)), Peer: noOneToCompare})
}

// syncIsStuck makes a sync ignore its context. First the controller's health check reports
// that, then the liveness check, because only a restart would help.
func (r *faultyReplica) syncIsStuck(standby *faultyReplica) {
	began := time.Now()
	r.poison("stuck", "stuck")
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	unhealthy := time.Since(began)
	r.waitTold(r.ns + "/stuck has been syncing since ")
	r.WantLive(r.T.Context())
	served, others := r.serveOne(), r.othersServe()
	waitFailing(r.Replica, "/livez", "stuck-syncs")
	stuck := time.Since(began)
	if unhealthy < faultyTooLong || stuck < faultyStuck {
		r.T.Errorf("for a stuck sync /healthz failed after %v and /livez after %v, want not before %v and %v", unhealthy, stuck, faultyTooLong, faultyStuck)
	}
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	wantHealthy(standby.Replica)
	r.repair("stuck")
	waitFailing(r.Replica, "/healthz")
	wantHealthy(r.Replica)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2", Fault: "one sync of one controller never ends (--sync-timeout=1s)",
		Ours: fmt.Sprintf("/healthz names it after %v, /livez after %v; its other objects synced in %v, a Foo and an Icecream Ready in %v",
			round(unhealthy), round(stuck), round(served), round(others)), Peer: noOneToCompare})
}

// runEnds makes the controller's Run fail, then panic.
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
	// Restarts happen after one second, two, four...
	if most := 1 + int(lasted/(2*time.Second)); starts < 2 || starts > most {
		r.T.Errorf("restarted %d times in %v, want at least twice and at most %d times", starts, lasted, most)
	}
	framework.ReportFault(r.T, framework.FaultRow{ID: "D1", Fault: "Run of one controller fails, then panics",
		Ours: fmt.Sprintf("/healthz names it; restarted %d times in %v; a Foo and an Icecream Ready in %v; recovered in %v", starts, lasted.Round(time.Second), round(others), round(repaired)), Peer: noOneToCompare})
}

// handlerPanics makes an event handler for Foos panic. The controller of the Foos, which
// shares the informer, must still sync them.
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
	// Creation and changes of the Foo are two causes.
	logged = strings.Count(r.Log.String(), message) - logged
	if most := 2 * (1 + int(lasted/(10*time.Second))); logged > most {
		r.T.Errorf("%d lines in %v, want at most %d", logged, lasted, most)
	}
	wantHealthy(r.Replica)
	r.waitTold("the event handler panics for handler-panics")
	framework.ReportFault(r.T, framework.FaultRow{ID: "D1", Fault: fmt.Sprintf("event handler of one controller panics %d times", changes),
		Ours: fmt.Sprintf("%d log lines in %v; its other objects synced in %v, a Foo and an Icecream Ready in %v", logged, lasted.Round(time.Second), round(served), round(others)), Peer: noOneToCompare})
}

// handlerIsSlow makes an event handler for Foos take a second for each of ten Foos.
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
		r.T.Errorf("after %v all events may have been handled, so the test shows nothing", lasted)
	}
	wantHealthy(r.Replica)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2", Fault: fmt.Sprintf("event handler of one controller takes %v for each of %d Foos", faulty.Delay, slow),
		Ours: fmt.Sprintf("all of them Ready in %v; its other objects synced in %v, a Foo and an Icecream Ready in %v",
			round(lasted-served-others), round(served), round(others)), Peer: noOneToCompare})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
