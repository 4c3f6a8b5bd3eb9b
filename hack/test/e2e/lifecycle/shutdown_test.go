// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestShutdownWaitsForWrite stops a leader while one of its writes is not yet answered.
func TestShutdownWaitsForWrite(t *testing.T) {
	r, hold := startHeld(t, "--controller-shutdown-timeout=20s")
	r.Signal(syscall.SIGTERM)
	r.WaitLog(`"Stopped controller" controller="icecream-controller"`)
	wantHeldLease(t)
	if code, err := hold.Release(t.Context()); err != nil || code != http.StatusOK {
		t.Errorf("the write got status %d, %v, want 200", code, err)
	}
	r.WantExit(0)
	if holder := framework.Holder(t); holder != "" {
		t.Errorf("the Lease is held by %q after the end, want it released", holder)
	}
}

// TestShutdownTimeoutNamesStragglers does the same with a write that is answered too late. The
// process ends without releasing the Lease, because the write that it sent may still happen.
func TestShutdownTimeoutNamesStragglers(t *testing.T) {
	const timeout = 2 * time.Second
	r, _ := startHeld(t, "--controller-shutdown-timeout="+timeout.String())
	told := time.Now()
	r.Signal(syscall.SIGTERM)
	r.WantExit(1)
	if took := time.Since(told); took < timeout || took > timeout+endsWithin {
		t.Errorf("it ended after %v, want slightly more than %v", took, timeout)
	}
	if want := "controllers still running 2s after they were told to stop: foo-controller (still syncing "; !strings.Contains(r.Log.String(), want) {
		t.Errorf("the log does not contain %q", want)
	}
	wantHeldLease(t)
	framework.FreeLease(t)
}

// startHeld starts a replica, which leads, and makes it scale a Deployment by a request that a
// proxy holds.
func startHeld(t *testing.T, flags ...string) (*framework.Replica, *clustertest.Hold) {
	t.Helper()
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, framework.Cluster(), nil)
	r := framework.StartReplicaWith(t, proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName), flags...).Ready()
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	hold := proxy.Hold(framework.ScalesDeployment(ns, "a"))
	framework.Foos.Patch(t, ns, "a", `{"spec":{"replicas":2}}`)
	framework.WaitClosed(t, "the leader writes", hold.Arrived())
	return r, hold
}

func wantHeldLease(t *testing.T) {
	t.Helper()
	if framework.Holder(t) == "" {
		t.Error("the Lease has no holder, want it held")
	}
}
