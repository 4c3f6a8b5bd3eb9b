// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// RunCommand runs the daemon's binary and waits for it.
func RunCommand(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return run(t, Binary(), args)
}

// RunPlugin runs the kubectl plugin and waits for it.
func RunPlugin(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return run(t, Plugin(), args)
}

func run(t *testing.T, path string, args []string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// WaitClosed waits until a channel is closed.
func WaitClosed(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	clustertest.WaitUntil(t, what, func(context.Context) error {
		select {
		case <-c:
			return nil
		default:
			return errors.New("not yet")
		}
	})
}

// Kill kills the process with SIGKILL and waits for it.
func (r *Replica) Kill() {
	r.T.Helper()
	r.Signal(syscall.SIGKILL)
	<-r.Done
}

// Program is a process that a test runs against the cluster.
type Program struct {
	T    *testing.T
	Cmd  *exec.Cmd
	Log  *SyncBuffer
	Done chan struct{}
}

// StartProgram starts the program at path. At the end of the test it is killed if it still
// runs. If the test failed, its log is printed.
func StartProgram(t *testing.T, path string, args ...string) *Program {
	t.Helper()
	return StartProgramTo(t, nil, path, args...)
}

// StartProgramTo is StartProgram with another destination of the log, unless that is nil.
func StartProgramTo(t *testing.T, log *os.File, path string, args ...string) *Program {
	t.Helper()
	p := &Program{T: t, Cmd: exec.Command(path, args...), Log: &SyncBuffer{}, Done: make(chan struct{})}
	if p.Cmd.Stdout, p.Cmd.Stderr = p.Log, p.Log; log != nil {
		p.Cmd.Stdout, p.Cmd.Stderr = log, log
	}
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Done)
		_ = p.Cmd.Wait() // the exit code is in Cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // it may already have ended
		<-p.Done
		if t.Failed() {
			t.Logf("log of %s:\n%s", p.Cmd, p.Log)
		}
	})
	return p
}

// mustRun ends the test if the program has ended.
func (p *Program) mustRun() {
	p.T.Helper()
	select {
	case <-p.Done:
		p.T.Fatalf("the program ended: %v", p.Cmd.ProcessState)
	default:
	}
}

// Signal sends a signal to the program.
func (p *Program) Signal(s os.Signal) {
	p.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.T.Fatal(err)
	}
}

// WaitLog waits until the log of the program contains a text.
func (p *Program) WaitLog(text string) {
	p.T.Helper()
	p.WaitLogged(1, text)
}

// WaitLogged waits until the log of the program contains a text n times.
func (p *Program) WaitLogged(n int, text string) {
	p.T.Helper()
	clustertest.WaitUntil(p.T, fmt.Sprintf("the program logs %q", text), func(context.Context) error {
		if logged := strings.Count(p.Log.String(), text); logged < n {
			return fmt.Errorf("logged %d times, want %d", logged, n)
		}
		return nil
	})
}

// WantExit waits for the program to end and checks its exit code.
func (p *Program) WantExit(code int) {
	p.T.Helper()
	WaitClosed(p.T, "the program ends", p.Done)
	if got := p.Cmd.ProcessState.ExitCode(); got != code {
		p.T.Errorf("exit code %d, want %d", got, code)
	}
}

// Stop stops the program and checks that it exits with 0.
func (p *Program) Stop() {
	p.T.Helper()
	p.Signal(syscall.SIGTERM)
	p.WantExit(0)
}

// SyncBuffer is a buffer that one goroutine writes while others read.
type SyncBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *SyncBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *SyncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}
