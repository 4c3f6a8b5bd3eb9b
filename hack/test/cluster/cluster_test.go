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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
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

// TestCluster checks what the end-to-end tests rely on but do not test themselves.
func TestCluster(t *testing.T) {
	c := start(t, Options{Nodes: 1, AuditLog: true})
	for _, args := range [][]string{
		{"create", "serviceaccount", "reader"},
		{"create", "role", "reader", "--verb=get,list", "--resource=configmaps"},
		{"create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader"},
	} {
		if _, err := c.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("ServiceAccount", func(t *testing.T) { testServiceAccount(t, c) })
	t.Run("restart of the API server", func(t *testing.T) { testRestart(t, c) })
}

func testServiceAccount(t *testing.T, c *Cluster) {
	ctx := t.Context()
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Kubectl(ctx, c.KubectlPath, kubeconfig, c.Dir, "get", "secrets")
	if err == nil || !strings.Contains(err.Error(), `User "system:serviceaccount:default:reader" cannot list resource "secrets"`) {
		t.Errorf("listing Secrets: %v, want it to be forbidden for the ServiceAccount", err)
	}
	other, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	if other == kubeconfig {
		t.Error("two replicas share one kubeconfig")
	}
	if _, err := c.ServiceAccountKubeconfig(ctx, "default", "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("a ServiceAccount that does not exist: %v, want not found", err)
	}
}

// testRestart checks that objects, tokens and the audit log survive a restart. The end of the
// test checks that the other components survive it.
func testRestart(t *testing.T, c *Cluster) {
	ctx := t.Context()
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	pid := processes(t, c)["kube-apiserver.pid"]
	if err := c.RestartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Kubectl(ctx, c.KubectlPath, kubeconfig, c.Dir, "get", "configmaps"); err != nil {
		t.Error(err)
	}
	if processes(t, c)["kube-apiserver.pid"] == pid {
		t.Error("the process is still the same")
	}
	for user, call := range map[string]string{
		"admin":                                "create roles",    // before the restart
		"system:serviceaccount:default:reader": "list configmaps", // after the restart
	} {
		events, err := c.AuditEvents(func(event auditv1.Event) bool {
			return Call(event) == call &&
				event.User.Username == user
		})
		if err != nil || len(events) != 1 {
			t.Errorf("the audit log has %q by %s %d times, %v; want once", call, user, len(events), err)
		}
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
