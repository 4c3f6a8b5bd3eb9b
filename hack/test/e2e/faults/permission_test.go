// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// healedWithin is how soon a controller must have recovered after it got the missing
// permission.
const healedWithin = 30 * time.Second

// TestFaultPermissionMissing revokes the daemon's permission to read a kind, before it starts
// and while it runs, and then the permission to write the kind's status.
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
	framework.WantSoon(t, "recovery after the grant", atStart, healedWithin)
	framework.Icecreams.WaitReady(t, ns, "b", 1)
	r.WaitState(framework.Aggregator, "Running")
	r.Ready()

	// An open watch continues until something ends it.
	grant = framework.RevokeFromDaemon(t, framework.Icecreams.May("list", ""), framework.Icecreams.May("watch", ""))
	link.Cut()
	r.WaitState(framework.Icecreams.Controller, "Degraded", "not permitted to watch "+framework.Icecreams.CRD())
	framework.Foos.Create(t, ns, "c", 1)
	framework.Foos.WaitReady(t, ns, "c", 1)
	framework.Icecreams.Create(t, ns, "d", 1)
	granted = grant()
	live := r.WaitState(framework.Icecreams.Controller, "Running").Sub(granted)
	framework.WantSoon(t, "recovery after the grant", live, healedWithin)
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
	framework.WantSoon(t, "writing the status after the grant", status, healedWithin)
	r.WaitState(framework.Icecreams.Controller, "Running")
	r.Stop()
	framework.ReportFault(t, framework.FaultRow{
		ID: "D4", Fault: "a permission is missing for one controller",
		Ours: fmt.Sprintf("other objects Ready after %s; Degraded, with verb and resource; recovered %s after the grant at startup, %s while running, %s for writes",
			framework.Seconds(others), framework.Seconds(atStart), framework.Seconds(live), framework.Seconds(status)),
		Peer: "not run: sample-controller has one controller",
	})
}
