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

// tailLines is how many lines of a log an error includes.
const tailLines = 15

// Process is a child process that runs or has ended.
type Process struct {
	name  string
	group *Group
	cmd   *exec.Cmd
	done  chan struct{}
}

// Start runs the program at path in its own process group. A Ctrl-C in the terminal then
// reaches only this process, which decides the order of the shutdown. Output goes to output
// or, if that is nil, to a log file in the group's directory. The name must be unique among
// the running processes.
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
	_ = p.cmd.Wait() // the ProcessState has the result
	// The process ID may be reused by an unrelated process, which the watchdog must not kill.
	_ = os.Remove(p.group.pidFile(p.name))
	close(p.done)
}

// Name returns the name under which the process was started.
func (p *Process) Name() string { return p.name }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the process runs. Then it returns how the process ended, even if
// successfully, with the last lines of its log.
func (p *Process) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	return fmt.Errorf("%s ended: %s%s", p.name, p.cmd.ProcessState, Tail(p.group.LogPath(p.name)))
}

// ExitCode returns the exit code of a process that has ended. It returns -1 while the process
// runs, or if a signal ended it.
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

// Stop asks the process to stop and returns when it has ended. The error says that it had to
// be killed after the grace period; [Process.Err] returns how it ended otherwise. Stop does
// nothing if the process has already ended.
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

// Tail returns the last lines of a log, introduced and indented for the end of an error
// message. It returns "" if there are none.
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
