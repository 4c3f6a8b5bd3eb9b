// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestTerminatingNamespaceGoesQuietly deletes namespaces with objects in them, whose
// Deployments go at the same time.
func TestTerminatingNamespaceGoesQuietly(t *testing.T) {
	freeLease(t)
	r := startReplica(t, "-v=0").ready() // as it is by default
	overKinds(t, func(t *testing.T, k kind) { terminateNamespace(t, k, r.log) })
	r.stop()
}

func terminateNamespace(t *testing.T, k kind, log fmt.Stringer) {
	const count = 20
	ns := newNamespace(t)
	provokeDenialsIn(ns)
	for i := range count {
		k.create(t, ns, fmt.Sprintf("x-%d", i), 1)
	}
	for i := range count {
		k.waitReady(t, ns, fmt.Sprintf("x-%d", i), 1)
		k.waitTold(t, ns, fmt.Sprintf("x-%d", i), 1)
	}
	before := len(log.String())
	refused := requests(t, ns)["create deployments (403)"]
	kubectl(t, "delete", "namespace", ns, "--wait", "--timeout=60s")

	// Whatever is still under way for it ends before this.
	other := newNamespace(t)
	k.create(t, other, "barrier", 1)
	k.waitReady(t, other, "barrier", 1)
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
	if got := requests(t, ns)["create deployments (403)"] - refused; got > count {
		t.Errorf("%d attempts to create a Deployment in the namespace, want at most one for each %s", got, k.Kind)
	} else {
		t.Logf("%d %ss: %d attempts to create a Deployment, %d lines in the log", count, k.Kind, got, all)
	}
}
