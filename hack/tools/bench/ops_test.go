// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

const opsExample = "staging/src/samplecontroller.io/controller-manager/examples/ops"

// opsPeers are the programs of three controllers.
var opsPeers = []opsPeer{
	{name: "this library", module: opsExample, source: ".", flags: []string{
		"--secure-port=0", "--leader-elect-resource-namespace=",
	}},
	{name: "controller-runtime", module: "hack/tools/bench", source: "./controllerruntime/ops", flags: []string{
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect-namespace=",
	}},
}

// TestOps runs the program of three controllers on both libraries against an API server, does the same
// to the objects of both, and logs what each has sent. Both must have the same result, and ours must write
// nothing when nothing changes.
func TestOps(t *testing.T) {
	const objects = 20
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(t.Context(), cluster.Options{AuditLog: true, AuditPolicy: auditPolicy, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	var runs []*opsRun
	for i, peer := range opsPeers {
		binary := filepath.Join(t.TempDir(), "ops")
		build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, peer.source)
		build.Dir, build.Env = filepath.Join(root, peer.module), append(os.Environ(), "GOWORK=off")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", peer.name, err, output)
		}
		runs = append(runs, newOpsRun(t, c, peer, binary, fmt.Sprintf("ops-%d", i)))
	}
	for _, r := range runs {
		r.withoutCRD()
	}
	manifest := filepath.Join(root, opsExample, "backups.yaml")
	for _, command := range [][]string{{"apply", "-f", manifest}, {"wait", "--for=condition=Established", "crd/backups.ops.example.org"}} {
		if _, err := c.Kubectl(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range runs {
		r.start()
		for _, step := range []struct {
			name string
			do   func(n int)
		}{
			{"created", r.create}, {"changed", r.change}, {"idle", r.idle}, {"restarted", r.restart}, {"deleted", r.remove},
		} {
			r.count(step.name, func() { step.do(objects) })
		}
		r.loseLease()
	}
	t.Logf("%d objects of each kind\n%s", objects, opsTable(runs))
	// What it writes after the change of the Lease depends on when it sees it, so that is only logged.
	if got := runs[0].notes; got["without CRD"] != othersWork || !strings.Contains(got["lost Lease"], processStays) {
		t.Errorf("%s: %q, want that %s and that %s", runs[0].peer.name, got, othersWork, processStays)
	}
	for _, step := range []string{"idle", "restarted"} {
		writes := maps.Clone(runs[0].counts[step])
		// Events of the election, also those that the end of the process interrupts, which the audit log calls a 504.
		maps.DeleteFunc(writes, func(call string, _ int) bool { return strings.HasPrefix(call, "create events") })
		if len(writes) > 0 {
			t.Errorf("%s sent %v when %s, want no writes", runs[0].peer.name, writes, step)
		}
	}
}

// count counts the writes of a step by verb and resource.
func (r *opsRun) count(step string, do func()) {
	r.Helper()
	before := len(r.requests())
	r.takeVaultCalls()
	do()
	r.vaultCalls[step] = r.takeVaultCalls()
	counts := map[string]int{}
	for _, event := range r.requests()[before:] {
		switch call := cluster.Call(event); {
		case isRead(event):
			r.reads[step]++
		case event.ResponseStatus != nil && event.ResponseStatus.Code >= 400:
			counts[fmt.Sprintf("%s: %d", call, event.ResponseStatus.Code)]++
		default:
			counts[call]++
		}
	}
	r.counts[step] = counts
}

// requests returns the requests of the program, without those for its Lease.
func (r *opsRun) requests() []auditv1.Event {
	r.Helper()
	events, err := r.cluster.AuditEvents(func(e auditv1.Event) bool {
		return e.User.Username == "system:serviceaccount:"+r.namespace+":default" && e.ObjectRef != nil && e.ObjectRef.Resource != "leases"
	})
	if err != nil {
		r.Fatal(err)
	}
	return events
}

// opsTable returns a table of the writes.
func opsTable(runs []*opsRun) string {
	var table strings.Builder
	for _, step := range []string{"created", "changed", "idle", "restarted", "deleted"} {
		for _, r := range runs {
			var writes []string
			for _, call := range slices.Sorted(maps.Keys(r.counts[step])) {
				writes = append(writes, fmt.Sprintf("%d %s", r.counts[step][call], call))
			}
			fmt.Fprintf(&table, "%-12s %-20s %d reads, writes: %s; vault: %v\n", step, r.peer.name, r.reads[step],
				strings.Join(writes, ", "), r.vaultCalls[step])
		}
	}
	for _, r := range runs {
		for _, what := range []string{"without CRD", "lost Lease"} {
			fmt.Fprintf(&table, "%-12s %-20s %s\n", what, r.peer.name, r.notes[what])
		}
	}
	return table.String()
}

// idle waits while nothing changes, for the time in OPS_IDLE.
func (r *opsRun) idle(int) {
	d, err := time.ParseDuration(os.Getenv("OPS_IDLE"))
	if err != nil {
		d = 5 * time.Second
	}
	if err := sleep(r.Context(), d); err != nil {
		r.Fatal(err)
	}
}

// wait waits until check returns nil.
func (r *opsRun) wait(what string, check func(context.Context) error) {
	r.Helper()
	h := harness{options: &options{giveUpAfter: 5 * time.Minute}}
	if err := h.await(r.Context(), what, check); err != nil {
		r.Fatalf("%s: %v", r.peer.name, err)
	}
}
