// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

const ops = "staging/src/samplecontroller.io/controller-manager/examples/ops"

// buildOps builds the example with three controllers once, and returns its directory.
var buildOps = sync.OnceValues(func() (dir string, err error) {
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(shared.Cluster().Dir, "ops-manager"), ".")
	cmd.Dir = filepath.Join(root, ops)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the example: %w\n%s", err, output)
	}
	return cmd.Dir, nil
})

// installOps builds the example with three controllers and installs its CRD. It returns the example's
// directory and program.
func installOps(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := buildOps()
	if err != nil {
		t.Fatal(err)
	}
	shared.Kubectl(t, "apply", "-f", filepath.Join(dir, "backups.yaml"))
	shared.Kubectl(t, "wait", "--for=condition=Established", "crd/backups.ops.example.org")
	return dir, filepath.Join(shared.Cluster().Dir, "ops-manager")
}

// TestNewLeaderConfirmsOwner changes one Backup and deletes another while the next leader's watch of
// Backups is held, and then ends the leader. The next leader sees the CronJobs that its predecessor has
// changed, but only the old Backups. It must not write for them, nor clean up again.
func TestNewLeaderConfirmsOwner(t *testing.T) {
	ns := clustertest.NewNamespace(t, shared.Kube())
	_, program := installOps(t)
	var cleanups atomic.Int32
	vault := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			cleanups.Add(1)
		}
	}))
	t.Cleanup(vault.Close)
	flags := []string{
		"--controllers=backup-controller", "--namespace=" + ns, "--leader-elect-resource-namespace=" + ns, "--vault-url=" + vault.URL,
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--write-timeout=20s", "--bind-address=127.0.0.1",
	}
	former := framework.StartProgram(t, program, append(flags, "--kubeconfig="+shared.Cluster().Kubeconfig, "--secure-port=0")...)
	shared.Kubectl(t, "-n", ns, "create", "-f", claim(t))
	backup(t, ns, "changed", "@daily")
	backup(t, ns, "deleted", "@daily")
	waitSchedule(t, ns, "changed", "@daily")
	waitSchedule(t, ns, "deleted", "@daily")

	// The next leader is warm, and then sees nothing new of Backups.
	shared.Kubectl(t, "create", "clusterrolebinding", ns, "--clusterrole=cluster-admin", "--serviceaccount="+ns+":default")
	shared.Kubectl(t, "-n", ns, "create", "serviceaccount", "default")
	delayer := clustertest.StartDelayer(t, shared.Cluster(), "/apis/ops.example.org/v1/namespaces/"+ns+"/backups")
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	next := framework.StartProgram(t, program, append(flags,
		"--kubeconfig="+delayer.Kubeconfig(t, ns, "default"), fmt.Sprintf("--secure-port=%d", port))...)
	waitReady(t, fmt.Sprintf("https://127.0.0.1:%d/readyz", port))
	release := delayer.Hold()

	backup(t, ns, "changed", "@hourly")
	waitSchedule(t, ns, "changed", "@hourly")
	shared.Kubectl(t, "-n", ns, "delete", "backups.ops.example.org", "deleted")
	shared.Kubectl(t, "-n", ns, "delete", "cronjob", "backup-deleted") // as the garbage collector would
	former.Stop()

	byNext := func() []auditv1.Event {
		return shared.Audit(t, cluster.InNamespace(ns), cluster.ByUserAgent("backup-controller"), func(e auditv1.Event) bool {
			return e.User.Username == "system:serviceaccount:"+ns+":default" && e.ObjectRef.Resource != "leases"
		})
	}
	clustertest.WaitUntil(t, "the new leader has considered both Backups", func(context.Context) error {
		for _, name := range []string{"changed", "deleted"} {
			if !slices.ContainsFunc(byNext(), func(e auditv1.Event) bool { return strings.HasSuffix(e.RequestURI+e.ObjectRef.Name, name) }) {
				return errors.New("no request for " + name)
			}
		}
		return nil
	})
	release()
	backup(t, ns, "later", "@weekly")
	waitSchedule(t, ns, "later", "@weekly") // the new leader leads, and its cache has caught up
	for _, event := range byNext() {
		if name := event.ObjectRef.Name; event.Verb != "list" && name != "later" && name != "backup-later" {
			t.Errorf("the new leader sent %s %s", cluster.Call(event), name)
		}
	}
	waitSchedule(t, ns, "changed", "@hourly")
	if n := cleanups.Load(); n != 1 {
		t.Errorf("the vault was asked %d times to delete, want 1", n)
	}
	next.Stop()
}

// manifest writes a manifest.
func manifest(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// claim returns a manifest of the claim that backup refers to.
func claim(t *testing.T) (path string) {
	t.Helper()
	return manifest(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
}

// backup creates or changes a Backup.
func backup(t *testing.T, ns, name, schedule string) {
	t.Helper()
	shared.Kubectl(t, "-n", ns, "apply", "-f", manifest(t, fmt.Sprintf(`{apiVersion: ops.example.org/v1, kind: Backup,
		metadata: {name: %s}, spec: {source: data, schedule: %q, retention: 3}}`, name, schedule)))
}

// waitSchedule waits until the CronJob of a Backup has a schedule.
func waitSchedule(t *testing.T, ns, name, schedule string) {
	t.Helper()
	clustertest.WaitUntil(t, "the CronJob of "+name+" runs "+schedule, func(ctx context.Context) error {
		job, err := shared.Kube().BatchV1().CronJobs(ns).Get(ctx, "backup-"+name, metav1.GetOptions{})
		if err == nil && job.Spec.Schedule != schedule {
			err = errors.New("it runs " + job.Spec.Schedule)
		}
		return err
	})
}

// waitReady waits until a probe passes.
func waitReady(t *testing.T, url string) {
	t.Helper()
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(insecure.CloseIdleConnections)
	clustertest.WaitUntil(t, url+" passes", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := insecure.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}
