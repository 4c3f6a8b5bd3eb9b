// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

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
)

// program is a process that a test runs against the cluster.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{}
}

// startProgram starts the program at path. It is killed at the end of the test if
// it still runs; its log is shown if the test failed.
func startProgram(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(path, args...), log: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		if t.Failed() {
			t.Logf("log of %s:\n%s", p.cmd, p.log)
		}
	})
	return p
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// waitLog waits until the program has logged a text.
func (p *program) waitLog(text string) {
	p.t.Helper()
	waitUntil(p.t, fmt.Sprintf("the program logs %q", text), func(context.Context) error {
		if !strings.Contains(p.log.String(), text) {
			return errors.New("not yet")
		}
		return nil
	})
}

// wantExit waits for the program to end and compares its exit code.
func (p *program) wantExit(code int) {
	p.t.Helper()
	waitUntil(p.t, "the program ends", func(context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
}

// stop asks the program to end and wants it to, in order.
func (p *program) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.wantExit(0)
}

// syncBuffer is a buffer that one goroutine writes while others read.
type syncBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}
