// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// healedWithin is within what a controller is right again after it was granted what it lacks.
const healedWithin = 30 * time.Second

// TestFaultPermissionMissing takes the right to read a kind from the daemon, before it
// starts and while it runs, then the right to write its status.
func TestFaultPermissionMissing(t *testing.T) {
	framework.FreeLease(t)
	ns := framework.NewNamespace(t)
	grant := framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
	link := clustertest.StartLink(t, framework.Cluster())
	started := time.Now()
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName))
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitReady(t, ns, "a", 1)
	framework.Foos.WaitPodsReported(t, ns, "a", 1)
	others := time.Since(started)
	r.WaitState(framework.Icecreams.Controller, "Degraded", "not permitted to watch "+framework.Icecreams.CRD())
	r.WaitState(framework.Foos.Controller, "Running")
	framework.Icecreams.Create(t, ns, "b", 1)
	granted := grant()
	atStart := r.WaitState(framework.Icecreams.Controller, "Running").Sub(granted)
	framework.WantSoon(t, "to heal after the grant", atStart, healedWithin)
	framework.Icecreams.WaitReady(t, ns, "b", 1)
	r.WaitState(framework.Aggregator, "Running")
	r.Ready()

	// A watch that is open goes on until something ends it.
	grant = framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
	link.Cut()
	r.WaitState(framework.Icecreams.Controller, "Degraded", "not permitted to watch "+framework.Icecreams.CRD())
	framework.Foos.Create(t, ns, "c", 1)
	framework.Foos.WaitReady(t, ns, "c", 1)
	framework.Icecreams.Create(t, ns, "d", 1)
	granted = grant()
	live := r.WaitState(framework.Icecreams.Controller, "Running").Sub(granted)
	framework.WantSoon(t, "to heal after the grant", live, healedWithin)
	framework.Icecreams.WaitReady(t, ns, "d", 1)

	grant = framework.RevokeFromDaemon(t, framework.Icecreams.May("patch", "/status"))
	framework.Icecreams.Create(t, ns, "e", 1)
	r.WaitState(framework.Icecreams.Controller, "Degraded", "may not patch icecreams/status."+framework.Icecreams.Group, ns)
	framework.Foos.Create(t, ns, "f", 1)
	framework.Foos.WaitReady(t, ns, "f", 1)
	r.WaitState(framework.Foos.Controller, "Running")
	granted = grant()
	framework.Icecreams.WaitReady(t, ns, "e", 1)
	status := time.Since(granted)
	framework.WantSoon(t, "to write the status after the grant", status, healedWithin)
	r.WaitState(framework.Icecreams.Controller, "Running")
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D4", Fault: "a permission is missing for one controller",
		Ours: fmt.Sprintf("others ready after %s; Degraded, with verb and resource; healed %s after the grant at start, %s live, %s for writes",
			framework.Seconds(others), framework.Seconds(atStart), framework.Seconds(live), framework.Seconds(status)),
		Peer: "not run: sample-controller has one controller",
	})
}
