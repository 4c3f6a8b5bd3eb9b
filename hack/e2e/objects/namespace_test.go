// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// TestTerminatingNamespaceIsQuiet deletes namespaces with objects in them, whose
// Deployments go at the same time.
func TestTerminatingNamespaceIsQuiet(t *testing.T) {
	framework.FreeLease(t)
	r := framework.StartReplica(t, "-v=0").Ready() // the default verbosity
	framework.OverKinds(t, func(t *testing.T, k framework.Kind) { terminateNamespace(t, k, r.Log) })
	r.Stop()
}

func terminateNamespace(t *testing.T, k framework.Kind, log fmt.Stringer) {
	const count = 20
	ns := framework.NewNamespace(t)
	framework.ExpectDenialsIn(ns)
	for i := range count {
		k.Create(t, ns, fmt.Sprintf("x-%d", i), 1)
	}
	for i := range count {
		k.WaitReady(t, ns, fmt.Sprintf("x-%d", i), 1)
		k.WaitPodsReported(t, ns, fmt.Sprintf("x-%d", i), 1)
	}
	before := len(log.String())
	refused := framework.Requests(t, ns)["create deployments (403)"]
	framework.Kubectl(t, "delete", "namespace", ns, "--wait", "--timeout=60s")

	// Whatever is still under way for it ends before this.
	other := framework.NewNamespace(t)
	k.Create(t, other, "barrier", 1)
	k.WaitReady(t, other, "barrier", 1)
	all := 0
	for i := range count {
		var lines []string
		for line := range strings.Lines(log.String()[before:]) {
			if strings.Contains(line, fmt.Sprintf(`%s/x-%d"`, ns, i)) {
				lines = append(lines, line)
			}
		}
		all += len(lines)
		if len(lines) > 1 {
			t.Errorf("%d lines are logged of %s x-%d, want at most one:\n%s", len(lines), k.Kind, i, strings.Join(lines, ""))
		}
	}
	if got := framework.Requests(t, ns)["create deployments (403)"] - refused; got > count {
		t.Errorf("%d attempts to create a Deployment in the namespace, want at most one for each %s", got, k.Kind)
	} else {
		t.Logf("%d %ss: %d attempts to create a Deployment, %d lines in the log", count, k.Kind, got, all)
	}
}
