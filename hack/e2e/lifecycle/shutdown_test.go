// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestShutdownWaitsForWrite ends a leader while the API server has not
// answered one of its writes.
func TestShutdownWaitsForWrite(t *testing.T) {
	r, hold := startHeld(t, "--controller-shutdown-timeout=20s")
	r.Signal(syscall.SIGTERM)
	r.WaitLog(`"Stopped controller" controller="icecream-controller"`)
	wantHeldLease(t)
	if code, err := hold.Release(t.Context()); err != nil || code != http.StatusOK {
		t.Errorf("the write was answered with %d %v, want 200", code, err)
	}
	r.WantExit(0)
	if lease, err := framework.Lease(t.Context()); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		t.Errorf("the Lease is %+v after the end, error %v, want it released", lease.Spec, err)
	}
}

// TestShutdownTimeoutNamesStragglers does the same with a write that is
// answered too late: the process ends without releasing the Lease, because what it has
// sent may yet be done.
func TestShutdownTimeoutNamesStragglers(t *testing.T) {
	const timeout = 2 * time.Second
	r, _ := startHeld(t, "--controller-shutdown-timeout="+timeout.String())
	told := time.Now()
	r.Signal(syscall.SIGTERM)
	r.WantExit(1)
	if took := time.Since(told); took < timeout || took > timeout+endsWithin {
		t.Errorf("it ended after %v, want %v and a little", took, timeout)
	}
	if want := "controllers still running 2s after they were told to stop: foo-controller (syncs "; !strings.Contains(r.Log.String(), want) {
		t.Errorf("the log lacks %q", want)
	}
	wantHeldLease(t)
	framework.FreeLease(t)
}

// startHeld starts a replica, which leads, and has it scale a Deployment by a request
// that a proxy holds.
func startHeld(t *testing.T, flags ...string) (*framework.Replica, *clustertest.Hold) {
	t.Helper()
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, framework.Cluster(), nil)
	r := framework.StartReplicaWith(t, proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName), append([]string{
		"--write-timeout=20s", "--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s",
	}, flags...)...).Ready()
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	hold := proxy.Hold(framework.ScalesDeployment(ns, "a"))
	framework.Foos.Patch(t, ns, "a", `{"spec":{"replicas":2}}`)
	framework.WaitClosed(t, "the leader writes", hold.Arrived())
	return r, hold
}

func wantHeldLease(t *testing.T) {
	t.Helper()
	if lease, err := framework.Lease(t.Context()); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Errorf("the Lease is %+v, error %v, want it held", lease.Spec, err)
	}
}

// TestControllerStartInterval wants each controller to start between one and two
// intervals after the process leads, and not all in one instant.
func TestControllerStartInterval(t *testing.T) {
	const interval = 2 * time.Second
	framework.FreeLease(t)
	r := framework.StartReplica(t, "--controller-start-interval="+interval.String())
	led := waitLogged(r.Program, `"Leading"`)[0]
	var starts []time.Time
	clustertest.WaitUntil(t, "all controllers have started", func(context.Context) error {
		if starts = logged(t, r.Log.String(), `"Starting controller" controller=`); len(starts) < 3 {
			return fmt.Errorf("%d have", len(starts))
		}
		return nil
	})
	for _, start := range starts {
		// Timers are late on a busy machine, never early.
		if after := start.Sub(led); after < interval || after > 2*interval+endsWithin {
			t.Errorf("a controller started %v after the process led, want %v to %v", after, interval, 2*interval)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	if spread := starts[len(starts)-1].Sub(starts[0]); spread < 10*time.Millisecond {
		t.Errorf("all controllers started within %v, want jitter between them", spread)
	}
	r.Stop()
}

// waitLogged waits until the program has logged a message and returns when it did so.
func waitLogged(p *framework.Program, message string) []time.Time {
	p.T.Helper()
	p.WaitLog(message)
	return logged(p.T, p.Log.String(), message)
}

// logged returns when a message was logged, by the clock of the lines.
func logged(t *testing.T, log, message string) []time.Time {
	t.Helper()
	var times []time.Time
	for _, match := range regexp.MustCompile(`(?m)^I(\d{4} \S+) .*`+regexp.QuoteMeta(message)).FindAllStringSubmatch(log, -1) {
		at, err := time.Parse("0102 15:04:05.000000", match[1])
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, at)
	}
	return times
}
