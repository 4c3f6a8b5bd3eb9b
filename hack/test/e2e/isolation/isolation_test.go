// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/e2e/isolation/faulty"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
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
	waitHealthy(leader.Replica) // idle
	waitHealthy(standby.Replica)

	t.Run("syncs panic", func(t *testing.T) { leader.in(t).syncsFail("panic", "panic", "Sync panicked") })
	t.Run("syncs hang", func(t *testing.T) { leader.in(t).syncsFail("hang", "timeout", "Sync took too long") })
	t.Run("syncs are stuck", func(t *testing.T) { leader.in(t).syncsAreStuck(standby) })
	t.Run("Run ends", func(t *testing.T) { leader.in(t).runEnds() })
	t.Run("event handler panics", func(t *testing.T) { leader.in(t).handlerPanics() })
	t.Run("event handler hangs", func(t *testing.T) { leader.in(t).handlerHangs() })
	waitHealthy(standby.Replica)
	standby.Stop()
	leader.Stop()
}

// poisoned is the number of objects whose syncs fail. One of the ten workers stays free even if
// they hang.
const poisoned = 9

// syncsFail makes the syncs of some objects fail.
func (r *faultyReplica) syncsFail(fault, result, message string) {
	began, syncs, logged := time.Now(), r.syncs(result), strings.Count(r.Log.String(), message)
	for i := range poisoned {
		r.poison(fmt.Sprintf("%s-%d", fault, i), fault)
	}
	var served, others time.Duration
	for time.Since(began) < faultLasts {
		served = max(served, r.serveOne())
		others = max(others, r.othersServe())
	}
	syncs, logged = r.syncs(result)-syncs, strings.Count(r.Log.String(), message)-logged
	lasted := time.Since(began)
	if most := poisoned * mostSyncs; syncs < poisoned || lasted < 20*time.Second && syncs > most {
		r.T.Errorf("%d syncs of %d objects in %v, want at least one each and at most %d", syncs, poisoned, lasted, most)
	}
	// The same cause for the same object is logged once in 10 s.
	if most := poisoned * (1 + int(lasted/(10*time.Second))); logged < poisoned || logged > most {
		r.T.Errorf("%d lines in %v, want at least %d and at most %d", logged, lasted, poisoned, most)
	}
	if got := r.failingObjects(); got != poisoned {
		r.T.Errorf("%d objects counted as failing, want %d", got, poisoned)
	}
	waitHealthy(r.Replica) // because the failing objects back off, and others are synced
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
			lasted.Round(time.Second), syncs, logged, round(served), round(others), round(repaired)), Peer: noOneToCompare})
}

// syncsAreStuck makes syncs ignore their contexts. Other objects are synced beside them. First the
// controller's health check reports that, then the liveness check, because only a restart would
// help.
func (r *faultyReplica) syncsAreStuck(standby *faultyReplica) {
	const message = `"Sync is stuck"`
	began := time.Now()
	r.poison("stuck-0", "stuck")
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	unhealthy := time.Since(began)
	r.waitTold(r.ns + "/stuck-0 has been syncing since ")
	for i := range poisoned {
		r.poison(fmt.Sprintf("stuck-%d", i), "stuck")
	}
	r.WaitLogged(poisoned, message)
	served, others := r.serveOne(), r.othersServe()
	waitFailing(r.Replica, "/livez", "stuck-syncs")
	stuck := time.Since(began)
	if unhealthy < faultyTooLong || stuck < faultyStuck {
		r.T.Errorf("for a stuck sync /healthz failed after %v and /livez after %v, want not before %v and %v", unhealthy, stuck, faultyTooLong, faultyStuck)
	}
	waitFailing(r.Replica, "/healthz", faulty.ControllerName)
	waitHealthy(standby.Replica)
	if n := strings.Count(r.Log.String(), message); n != poisoned {
		r.T.Errorf("%d syncs were stuck, want %d at the same time", n, poisoned)
	}
	for i := range poisoned {
		r.repair(fmt.Sprintf("stuck-%d", i))
	}
	waitHealthy(r.Replica)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2",
		Fault: fmt.Sprintf("%d of 10 syncs of one controller never end (--sync-timeout=1s)", poisoned),
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
	waitHealthy(r.Replica)
	starts = strings.Count(r.Log.String(), message) - starts
	lasted := time.Since(began)
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
	// Creation and changes of the Foo are two causes.
	logged = strings.Count(r.Log.String(), message) - logged
	lasted := time.Since(began)
	if most := 2 * (1 + int(lasted/(10*time.Second))); logged > most {
		r.T.Errorf("%d lines in %v, want at most %d", logged, lasted, most)
	}
	waitHealthy(r.Replica)
	r.waitTold("the event handler panics for handler-panics")
	framework.ReportFault(r.T, framework.FaultRow{ID: "D1", Fault: fmt.Sprintf("event handler of one controller panics %d times", changes),
		Ours: fmt.Sprintf("%d log lines in %v; its other objects synced in %v, a Foo and an Icecream Ready in %v", logged, lasted.Round(time.Second), round(served), round(others)), Peer: noOneToCompare})
}

// handlerHangs makes an event handler for Foos hang while ten Foos are created.
func (r *faultyReplica) handlerHangs() {
	const foos = 10
	name := func(i int) string { return fmt.Sprintf("hanging-%d", i) }
	began := time.Now()
	framework.Foos.Create(r.T, r.ns, name(0), 0)
	framework.Foos.Patch(r.T, r.ns, name(0), `{"metadata":{"annotations":{"fault":"hang"}}}`)
	r.WaitLog(`"Event handler hangs"`)
	for i := 1; i < foos; i++ {
		framework.Foos.Create(r.T, r.ns, name(i), 0)
	}
	for i := range foos {
		framework.Foos.WaitReady(r.T, r.ns, name(i), 0)
	}
	lasted := time.Since(began)
	served, others := r.serveOne(), r.othersServe()
	waitHealthy(r.Replica)
	if strings.Contains(r.Log.String(), `"Event handler continues"`) {
		r.T.Error("the event handler did not hang all the time, so the test shows nothing")
	}
	framework.Foos.Patch(r.T, r.ns, name(0), `{"metadata":{"annotations":{"fault":null}}}`)
	r.WaitLog(`"Event handler continues"`)
	framework.ReportFault(r.T, framework.FaultRow{ID: "D2",
		Fault: fmt.Sprintf("event handler of one controller hangs while %d Foos are created", foos),
		Ours: fmt.Sprintf("all of them Ready in %v; its other objects synced in %v, a Foo and an Icecream Ready in %v",
			round(lasted), round(served), round(others)), Peer: noOneToCompare})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
