// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestTerminatingNamespaceGoesQuietly deletes a namespace with Foos in it, whose
// Deployments go at the same time.
func TestTerminatingNamespaceGoesQuietly(t *testing.T) {
	const count = 20
	ns := newNamespace(t)
	freeLease(t)
	r := startReplica(t, "-v=0").ready() // as it is by default
	for i := range count {
		createFoo(t, ns, fmt.Sprintf("foo-%d", i), 1)
	}
	for i := range count {
		waitReady(t, ns, fmt.Sprintf("foo-%d", i), 1)
	}
	before := len(r.log.String())
	refused := requests(t, ns)["create deployments (403)"]
	kubectl(t, "delete", "namespace", ns, "--wait", "--timeout=60s")

	// Whatever is still under way for it ends before this.
	other := newNamespace(t)
	createFoo(t, other, "barrier", 1)
	waitReady(t, other, "barrier", 1)
	log := r.log.String()[before:]
	for i := range count {
		var lines []string
		for line := range strings.Lines(log) {
			if strings.Contains(line, fmt.Sprintf(`%s/foo-%d"`, ns, i)) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 1 {
			t.Errorf("%d lines are logged of Foo foo-%d, want at most one:\n%s", len(lines), i, strings.Join(lines, ""))
		}
	}
	if got := requests(t, ns)["create deployments (403)"] - refused; got > count {
		t.Errorf("%d attempts to create a Deployment in the namespace, want at most one for each Foo", got)
	} else {
		t.Logf("%d Foos: %d attempts to create a Deployment, %d lines in the log", count, got, strings.Count(log, "\n"))
	}
	r.stop()
}
