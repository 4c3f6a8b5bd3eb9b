// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tailLines is how much of a log an error shows.
const tailLines = 15

// Process is a running or ended child process.
type Process struct {
	name  string
	group *Group
	cmd   *exec.Cmd
	done  chan struct{}
}

// Start runs the program at path in a process group of its own, so that a
// Ctrl-C at the terminal reaches only this process, which then decides the
// order of the end. Output goes to output or, if that is nil, to a log file in
// the group's directory. The name must be unique among those that run.
func (g *Group) Start(name string, output *os.File, path string, args ...string) (*Process, error) {
	shim, err := g.Shim(name, path)
	if err != nil {
		return nil, err
	}
	if output == nil {
		if output, err = g.OpenLog(name); err != nil {
			return nil, err
		}
		defer output.Close()
	}
	cmd := exec.Command(shim, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{name: name, group: g, cmd: cmd, done: make(chan struct{})}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // the ProcessState says it all
	// The number may soon belong to a stranger, whom the watchdog must spare.
	_ = os.Remove(p.group.pidFile(p.name))
	close(p.done)
}

// Name returns the name that the process was started under.
func (p *Process) Name() string { return p.name }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process runs. After that it says how it ended, even
// if well, with the last lines of its log.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	return fmt.Errorf("%s ended: %s%s", p.name, p.cmd.ProcessState, Tail(p.group.LogPath(p.name)))
}

// ExitCode returns the exit code of a process that has ended, or -1 if it runs
// or was ended by a signal.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// Stop asks the process to end and returns when it is gone. The error says that
// it had to be killed, after the grace period; how it ended otherwise is told by
// [Process.Err]. A process that has already ended is left as it is.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("stopping %s: killed after %s", p.name, grace)
	}
	return nil
}

// Tail returns the last lines of a log, introduced and indented to end an error
// message, or nothing if there are none.
func Tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "; the end of its log:\n    " + strings.Join(lines, "\n    ")
}
