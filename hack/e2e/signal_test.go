// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

const (
	// signalTries is how many processes are told to end, at moments that lie evenly
	// within signalledWithin of their starts.
	signalTries     = 200
	signalledWithin = 2 * time.Second
	// signalLanes is how many run at once: one leads, the others stand by or start.
	signalLanes = 4
	// endsWithin is how soon a process ends that was told to.
	endsWithin = 5 * time.Second
)

// TestSIGTERMAtAnyMomentEndsTheDaemonInOrder tells processes to end, each at another
// moment of its life, while they hand the Lease on and Foos change. Each ends soon and
// with exit code 0, releases the Lease if it has it, and writes nothing after that. The
// signal may kill it only before main begins: nothing can catch it while packages
// initialise, although the Go runtime shows in /proc that it does.
func TestSIGTERMAtAnyMomentEndsTheDaemonInOrder(t *testing.T) {
	freeLease(t)
	certificate := "--cert-dir=" + t.TempDir() // made once: it would be most of what they do
	first := startReplica(t, certificate).ready()
	storm := startStorm(t, newNamespace(t), 50)
	first.stop()

	began := time.Now()
	// The runtime tells of each package that it has initialised. The race detector has a
	// process sleep for a second at its end.
	t.Setenv("GODEBUG", "inittrace=1")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	last := lastInit(t)
	var tries []*try
	for i := range signalTries {
		tries = append(tries, &try{after: time.Duration(i) * signalledWithin / (signalTries - 1)})
	}
	var lanes sync.WaitGroup
	for lane := range signalLanes {
		port := freePort(t)
		lanes.Go(func() {
			for i := range signalTries / signalLanes {
				// Those that run at once are in different parts of their lives.
				part := (i + lane) % signalLanes * (signalTries / signalLanes)
				if err := tries[part+i].run(t.Context(), port, certificate); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
	if t.Failed() {
		return
	}
	leading := 0
	for _, p := range tries {
		begun := strings.Contains(p.log.String(), last)
		if p.took > endsWithin || p.code != 0 && (!p.killed || begun) {
			t.Errorf("told to end %v after its start, when it was %s, a process ended after %v with code %d, killed by the signal: %t, main had begun: %t; want the end within %v and code 0, or the signal before main. Its log:\n%s",
				p.after, p.was, p.took, p.code, p.killed, begun, endsWithin, &p.log)
		}
		if strings.Contains(p.log.String(), `"Leading"`) {
			leading++
		}
	}
	t.Logf("%d processes, of which %d led, in %v:\n%s", len(tries), leading, time.Since(began).Round(time.Second), tally(tries))
	wantReleased(t, began, leading)

	next := startReplica(t).ready()
	storm.end(t)
	next.stop()
}

// TestSIGTERMEndsADaemonThatNobodyAnswers tells a process to end that waits for the API
// server, for how to authenticate and for its caches.
func TestSIGTERMEndsADaemonThatNobodyAnswers(t *testing.T) {
	link := clustertest.StartLink(t, testCluster)
	link.Hold(clustertest.Both)
	kubeconfig := link.Kubeconfig(t, testCluster, daemonName, daemonName)
	for name, tc := range map[string]struct{ flag, logged string }{
		"while it is configured":    {"--authentication-skip-lookup=false", "Generated self-signed cert"},
		"while it fills its caches": {"--authentication-skip-lookup", "Serving securely"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startReplicaWith(t, kubeconfig, tc.flag)
			r.waitLog(tc.logged)
			told := time.Now()
			r.stop()
			if took := time.Since(told); took > endsWithin {
				t.Errorf("it ended after %v, want at most %v", took, endsWithin)
			}
		})
	}
}

// lastInit returns what the runtime prints when the last package is initialised, just
// before main begins.
func lastInit(t *testing.T) string {
	t.Helper()
	_, stderr, _ := runCommand(t, "--version")
	i := strings.LastIndex(stderr, "\ninit ")
	if i < 0 {
		t.Fatalf("the runtime does not tell what it initialises:\n%s", stderr)
	}
	line, _, _ := strings.Cut(stderr[i:], "@")
	return line
}

// try is a process that is told to end.
type try struct {
	after  time.Duration // its start
	was    string        // what it was doing then
	took   time.Duration // from then to its end
	code   int
	killed bool // by the signal
	log    syncBuffer
}

// run runs the process, with credentials of its own.
func (p *try) run(ctx context.Context, port int, flags ...string) error {
	kubeconfig, err := testCluster.ServiceAccountKubeconfig(ctx, daemonName, daemonName)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.after+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(replicaFlags(kubeconfig, port), flags...)...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(p.after)
	p.was = stage(p.log.String())
	told := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("signalling a process %v after its start: %w; its log:\n%s", p.after, err, &p.log)
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	p.took, p.code = time.Since(told), cmd.ProcessState.ExitCode()
	p.killed = cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM
	return nil
}

// stages are what a process does, and what it has logged by then.
var stages = []struct{ name, logged string }{
	{"loading", ""},
	{"being configured", "/cmd/sample-controller-manager/app @"}, // the last package is initialised
	{"filling its caches", `"Starting sample-controller-manager"`},
	{"campaigning", `"Campaigning for the lease"`},
	{"standing by", `"Another process leads"`},
	{"leading", `"Leading"`},
}

func stage(log string) string {
	for _, s := range slices.Backward(stages) {
		if strings.Contains(log, s.logged) {
			return s.name
		}
	}
	return ""
}

// tally says what became of processes, by what they were doing.
func tally(tries []*try) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "it was\tfirst at\tlast at\tcode 0\tkilled\t<50ms\t<100ms\t<200ms\t<500ms\t<1s\t<2s\t<5s\tlongest\t")
	for _, s := range stages {
		var of []*try
		killed, counts := 0, make([]int, 7)
		for _, p := range tries {
			if p.was != s.name {
				continue
			}
			of = append(of, p)
			if p.killed {
				killed++
			}
			for i, limit := range []time.Duration{50, 100, 200, 500, 1000, 2000, 5000} {
				if p.took < limit*time.Millisecond {
					counts[i]++
					break
				}
			}
		}
		if len(of) == 0 {
			continue
		}
		longest := slices.MaxFunc(of, func(a, b *try) int { return cmp.Compare(a.took, b.took) })
		fmt.Fprintf(table, "%s\t%v\t%v\t%d\t%d", s.name, of[0].after.Round(time.Millisecond), of[len(of)-1].after.Round(time.Millisecond), len(of)-killed, killed)
		for _, n := range counts {
			fmt.Fprintf(table, "\t%d", n)
		}
		fmt.Fprintf(table, "\t%v\t\n", longest.took.Round(time.Millisecond))
	}
	_ = table.Flush() // to a strings.Builder, which cannot fail
	return b.String()
}

// wantReleased checks that each replica that led since then has released the Lease and
// written nothing afterwards.
func wantReleased(t *testing.T, began time.Time, leading int) {
	t.Helper()
	events, err := testCluster.AuditEvents(func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(began) })
	if err != nil {
		t.Fatal(err)
	}
	r, err := leaders.Check(events, leaders.Options{
		Lease:   types.NamespacedName{Namespace: daemonName, Name: daemonName},
		Replica: leaders.ServiceAccount(daemonName, daemonName),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writes in %d terms, nobody led for %v", r.Writes, len(r.Epochs), r.Leaderless)
	kept := slices.ContainsFunc(r.Epochs, func(e leaders.Epoch) bool { return e.End != leaders.Released })
	if len(r.Violations) > 0 || kept {
		t.Errorf("want no violations, and each Lease released:\n%s", r)
	}
	if leading < signalTries/20 || r.Writes < leading {
		t.Errorf("%d processes led and wrote %d times: this test would not see much", leading, r.Writes)
	}
}
