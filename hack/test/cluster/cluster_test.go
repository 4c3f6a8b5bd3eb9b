// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start starts a cluster and stops it at the end of the test, when nothing may be left behind.
func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Progress = os.Stderr
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pids := processes(t, c)
		if want := 2 + len(c.components); len(pids) != want {
			t.Errorf("%d processes, want %d: %v", len(pids), want, pids)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for name, pid := range pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s (pid %d) still exists after Stop: %v", name, pid, err)
			}
		}
		if _, err := os.Stat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s still exists after Stop: %v", c.Dir, err)
		}
	})
	return c
}

// processes returns the process ids of the cluster's components.
func processes(t *testing.T, c *Cluster) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Dir, "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(content), &pid); err != nil {
			t.Fatal(err)
		}
		pids[filepath.Base(file)] = pid
	}
	return pids
}

// TestCluster checks that a cluster leaves nothing behind, also after a restart of the API server.
func TestCluster(t *testing.T) {
	c := start(t, Options{Nodes: 1, AuditLog: true})
	before := processes(t, c)
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if processes(t, c)["kube-apiserver.pid"] == before["kube-apiserver.pid"] {
		t.Error("the API server is still the same process")
	}
}

// TestStartFails checks that the error includes the API server's, and that nothing is left
// behind.
func TestStartFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{APIServerFlags: map[string]string{"no-such-flag": "true"}, Progress: os.Stderr})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want an error that includes the API server's", err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "sample-controller-manager-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStartRespectsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{Progress: os.Stderr}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestComponentDies checks that Stop reports a component that died by itself.
func TestComponentDies(t *testing.T) {
	c, err := Start(t.Context(), Options{Nodes: 1, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := c.components[1]
	if err := syscall.Kill(processes(t, c)[scheduler.Name()+".pid"], syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-scheduler.Done()
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), scheduler.Name()+" ended: signal: killed; the end of its log:") {
		t.Errorf("got %v, want the end of %s", err, scheduler.Name())
	}
}
