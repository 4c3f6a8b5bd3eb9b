// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphanVariable makes the test binary act as a parent that is killed. Its value is the
// directory of the parent's group.
const orphanVariable = "PROCESS_TEST_ORPHAN_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphanVariable); dir != "" {
		startForever(dir)
	}
	os.Exit(m.Run())
}

func startForever(dir string) {
	g, err := NewGroup(dir)
	if err != nil {
		panic(err)
	}
	if _, err := g.Start("sleep", nil, "/bin/sleep", "1000"); err != nil {
		panic(err)
	}
	select {}
}

func newGroup(t *testing.T) *Group {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "it's a group")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	g, err := NewGroup(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the directory after an orderly stop: %v", err)
		}
	})
	return g
}

func sh(t *testing.T, g *Group, script string) *Process {
	t.Helper()
	p, err := g.Start("sh", nil, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestErrShowsLog(t *testing.T) {
	p := sh(t, newGroup(t), "for i in $(seq 20); do echo line $i; done; exit 7")
	<-p.Done()
	err := p.Err()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"sh ended: exit status 7", "line 6\n", "line 20"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "line 5\n") {
		t.Errorf("the error contains more than the end of the log: %v", err)
	}
	if err := p.Stop(time.Minute); err != nil {
		t.Errorf("stopping a process that has ended: %v", err)
	}
}

func TestStop(t *testing.T) {
	for name, test := range map[string]struct {
		script   string
		grace    time.Duration
		want     string
		wantCode int
	}{
		"gently":    {"trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", time.Minute, "", 0},
		"complains": {"trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done", time.Minute, "", 3},
		"killed":    {"trap '' TERM; echo up; while :; do sleep 0.01; done", 100 * time.Millisecond, "stopping sh: killed after 100ms", -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			p := sh(t, g, test.script)
			await(t, func() bool {
				content, _ := os.ReadFile(g.LogPath("sh"))
				return string(content) == "up\n"
			})
			if err := p.Err(); err != nil {
				t.Errorf("while it runs: %v", err)
			}
			if got := errorText(p.Stop(test.grace)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			select {
			case <-p.Done():
			default:
				t.Error("still running after Stop")
			}
			if got := p.ExitCode(); got != test.wantCode {
				t.Errorf("exit code %d, want %d", got, test.wantCode)
			}
		})
	}
}

// TestOrphans kills a parent with SIGKILL and expects its child and its directory to
// disappear.
func TestOrphans(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "group")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanVariable+"="+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	await(t, func() bool {
		content, _ := os.ReadFile(filepath.Join(dir, "sleep.pid"))
		child, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return child > 0
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	await(t, func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist) && gone(child)
	})
}

// gone reports whether a process has ended. It may still be a zombie where nothing reaps
// orphans.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out")
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
