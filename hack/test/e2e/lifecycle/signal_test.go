// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

const (
	// signalLanes is how many processes run at once: one leads, the others stand by or start.
	signalLanes = 4
	// endsWithin is how soon a process must end. A kubelet would kill it after 30 seconds, but
	// another minute is for a machine that pauses it.
	endsWithin = 90 * time.Second
)

// TestSIGTERMAtAnyMoment stops processes at different moments of their lives, while they hand
// over the Lease and Foos change. Each ends soon and with exit code 0, releases the Lease if
// it holds it, and writes nothing after that. The signal may kill a process only before it
// handles signals, which it sets up first: no Go program can handle them during package
// initialization. The daemon runs as in production, without the race detector.
func TestSIGTERMAtAnyMoment(t *testing.T) {
	signalTries := framework.Count(120, 40) // multiples of signalLanes
	framework.FreeLease(t)
	certificate := "--cert-dir=" + t.TempDir() // created once, because that takes most of the start-up time
	path := filepath.Join(t.TempDir(), framework.DaemonName)
	if err := framework.Build(t.Context(), path, "RACE=0"); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName,
		framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	first := framework.StartBuild(t, path, kubeconfig, certificate)
	first.WaitLog(`"Leading"`)
	within := max(2*time.Second, 3*time.Since(started)) // so that some lead even on a busy machine
	flapping := framework.StartFlapping(t, framework.NewNamespace(t), 50)
	first.Stop()
	t.Setenv("GODEBUG", "inittrace=1") // makes the runtime print which packages it has initialized
	last := lastInit(t, path)
	began := time.Now()
	var tries []*try
	for i := range signalTries {
		tries = append(tries, &try{after: time.Duration(i) * within / time.Duration(signalTries-1)})
	}
	var lanes sync.WaitGroup
	for lane := range signalLanes {
		port := framework.FreePort(t)
		lanes.Go(func() {
			for i := range signalTries / signalLanes {
				// Processes that run at the same time are in different stages.
				part := (i + lane) % signalLanes * (signalTries / signalLanes)
				if err := tries[part+i].run(t.Context(), path, port, certificate); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
	// On a machine that has become busy, most processes may have been stopped before they led.
	for port := framework.FreePort(t); led(tries) < signalTries/20 && !t.Failed(); {
		within *= 2
		p := &try{after: within}
		if err := p.run(t.Context(), path, port, certificate); err != nil {
			t.Error(err)
		}
		tries = append(tries, p)
	}
	if t.Failed() {
		return
	}
	wantStopped(t, tries, last)
	wantReleased(t, began, led(tries))

	next := framework.StartReplica(t).Ready()
	flapping.End(t)
	next.Stop()
}

// wantStopped checks how the processes ended. last is the last line of a process before main.
func wantStopped(t *testing.T, tries []*try, last string) {
	t.Helper()
	late, were := 0, map[string]int{}
	for _, p := range tries {
		were[p.was]++
		if p.took > endsWithin || p.code != 0 && (!p.killed || p.listened) {
			t.Errorf("process stopped %v after its start, while %s, ended after %v with code %d, killed by the signal: %t; want it to end within %v with code 0. Its log:\n%s",
				p.after, p.was, p.took, p.code, p.killed, endsWithin, &p.log)
		}
		if p.killed && strings.Contains(p.log.String(), last) {
			late++
		}
	}
	// A busy machine may pause some between the last package initialization and main.
	if most := len(tries) / 20; late > most {
		t.Errorf("the signal killed %d processes after main had begun, want at most %d", late, most)
	}
	t.Logf("%d processes, %d led; stages when stopped: %v", len(tries), led(tries), were)
}

// led counts the processes that led.
func led(tries []*try) (leading int) {
	for _, p := range tries {
		if strings.Contains(p.log.String(), `"Leading"`) {
			leading++
		}
	}
	return leading
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	framework.FreeLease(t)
	link := clustertest.StartLink(t, framework.Cluster())
	r := framework.StartReplicaWith(t, link.Kubeconfig(t, framework.Cluster(), framework.DaemonName,
		framework.DaemonName)).Ready()
	r.WaitLog("Starting workers") // before that, it may hold the Lease without knowing it
	link.Hold(clustertest.Both)   // the Lease cannot be released
	r.Signal(syscall.SIGTERM)
	r.WaitLog("All controllers have stopped")
	r.Signal(syscall.SIGTERM)
	r.WantExit(1)
}

// lastInit returns the line that the runtime prints after initializing the last package of a
// program, just before main.
func lastInit(t *testing.T, path string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
	i := strings.LastIndex(string(output), "\ninit ")
	if err != nil || i < 0 {
		t.Fatalf("no initialization trace from the runtime: %v\n%s", err, output)
	}
	line, _, _ := strings.Cut(string(output[i:]), "@")
	return line
}

// try is one process that the test stops.
type try struct {
	after    time.Duration // the start
	listened bool          // whether it handled signals then
	was      string        // its stage then
	took     time.Duration // from then until its end
	code     int
	killed   bool // by the signal
	log      framework.SyncBuffer
}

// run runs the process, with its own credentials.
func (p *try) run(ctx context.Context, path string, port int, flags ...string) error {
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(ctx, framework.DaemonName, framework.DaemonName)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.after+5*time.Minute)
	defer cancel()
	// The Go runtime leaves SIGINT ignored until the program starts to handle it. The program
	// starts to handle SIGTERM at the same time, but that is not visible, because the runtime
	// always catches it.
	args := slices.Concat([]string{"-c", `trap "" INT && exec "$@"`, "sh", path}, framework.ReplicaFlags(kubeconfig, port), flags)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(p.after)
	if p.listened, err = listens(cmd.Process.Pid); err != nil {
		return fmt.Errorf("%w; its log:\n%s", err, &p.log)
	}
	p.was = p.stage()
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

// listens reports whether the daemon handles signals. A shell may not have executed the daemon
// yet.
func listens(pid int) (bool, error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || filepath.Base(exe) != framework.DaemonName {
		return false, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false, err
	}
	_, mask, _ := strings.Cut(string(status), "\nSigCgt:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	caught, err := strconv.ParseUint(mask, 16, 64)
	return caught&(1<<(syscall.SIGINT-1)) != 0, err
}

// stages are the stages of a process, and what it has logged by then.
var stages = []struct{ name, logged string }{
	{"loading", ""},
	{"being configured", ""},
	{"filling its caches", `"Starting sample-controller-manager"`},
	{"campaigning", `"Campaigning for the lease"`},
	{"standing by", `"Another process leads"`},
	{"leading", `"Leading"`},
}

func (p *try) stage() string {
	if !p.listened {
		return stages[0].name
	}
	log := p.log.String()
	i := len(stages) - 1
	for !strings.Contains(log, stages[i].logged) {
		i--
	}
	return stages[i].name
}

// wantReleased checks that each replica that led since then released the Lease and wrote
// nothing afterwards.
func wantReleased(t *testing.T, began time.Time, leading int) {
	t.Helper()
	events := framework.Audit(t, func(event auditv1.Event) bool { return event.RequestReceivedTimestamp.After(began) })
	r, err := leaders.Check(events, leaders.Options{
		Lease:   types.NamespacedName{Namespace: framework.DaemonName, Name: framework.DaemonName},
		Replica: leaders.ServiceAccount(framework.DaemonName, framework.DaemonName),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writes in %d terms, no leader for %v", r.Writes, len(r.Epochs), r.Leaderless)
	kept := slices.ContainsFunc(r.Epochs, func(e leaders.Epoch) bool { return e.End != leaders.Released })
	if len(r.Violations) > 0 || kept {
		t.Errorf("want no violations, and each Lease released:\n%s", r)
	}
	if r.Writes < leading {
		t.Errorf("only %d processes led, with %d writes: too few for this test", leading, r.Writes)
	}
}
