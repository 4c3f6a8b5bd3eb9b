// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// TestSmoke runs a small load on a real API server and expects a table. The daemon
// must make only the unavoidable writes, even on a busy machine.
func TestSmoke(t *testing.T) {
	const foos = 5
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	binaries := t.TempDir()
	if err := build(t.Context(), root, binaries); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-load=create", "-rounds=1", "-n=5", "-give-up-after=5m"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := o.bench(t.Context(), o.loads[0], binaries)
	if err != nil {
		t.Fatal(err)
	}
	table := r.String()
	t.Logf("\n%s", table)
	for _, metric := range []string{untilDone, "change to Deployment p50, ms", writes, ownCPU, peakMemory} {
		if !strings.Contains(table, "\n"+metric+" ") {
			t.Errorf("the table has no %q", metric)
		}
	}
	for _, c := range r.candidates {
		for _, metric := range []string{untilDone, peakMemory, apiServerCPU} {
			if got := r.values(metric, c.name); len(got) != 1 || got[0] <= 0 {
				t.Errorf("%s, %s: got %v, want one positive value", c.name, metric, got)
			}
		}
		const least = 2 * foos // a Deployment and a status
		if got := r.values(writes, c.name); len(got) != 1 || got[0] < least || c.binary != "controllerruntime" && got[0] != least {
			t.Errorf("%s made %v writes, want %d", c.name, got, least)
		}
	}
}
