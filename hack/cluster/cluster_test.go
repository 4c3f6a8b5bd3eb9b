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
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
)

// start starts a cluster that ends with the test and leaves nothing behind.
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
				t.Errorf("%s (pid %d) is still there after Stop: %v", name, pid, err)
			}
		}
		if _, err := os.Stat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there after Stop: %v", c.Dir, err)
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

// deployment runs three Pods under the rules that a Deployment of ours meets.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:latest
`

func TestClusterRunsPods(t *testing.T) {
	c := start(t, Options{Nodes: 2, AuditLog: true})
	ctx := t.Context()

	manifest := filepath.Join(t.TempDir(), "deployment.yaml")
	if err := os.WriteFile(manifest, []byte(deployment), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "-f", manifest},
		{"rollout", "status", "deployment/web", "--timeout=60s"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 3 {
		t.Errorf("%d Pods, want 3", len(pods.Items))
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || !strings.HasPrefix(pod.Spec.NodeName, "node-") {
			t.Errorf("Pod %s is %s on Node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
		if pod.Spec.ServiceAccountName != "default" {
			t.Errorf("Pod %s has the ServiceAccount %q: admission is off", pod.Name, pod.Spec.ServiceAccountName)
		}
	}

	if _, err := c.Kubectl(ctx, "delete", "deployment", "web", "--cascade=foreground", "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
	audit, err := os.ReadFile(c.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"system:serviceaccount:kube-system:deployment-controller",
		"system:kube-scheduler",
	} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("the audit log does not name %s", want)
		}
	}
	if version, err := client.Discovery().ServerVersion(); err != nil || os.Getenv(assetsVariable) == "" && version.GitVersion != wantedKubernetes(t) {
		t.Errorf("server version %v, %v; want %s", version, err, wantedKubernetes(t))
	}
}

func TestServiceAccountKubeconfig(t *testing.T) {
	c := start(t, Options{})
	ctx := t.Context()
	for _, args := range [][]string{
		{"create", "serviceaccount", "reader"},
		{"create", "role", "reader", "--verb=get,list", "--resource=configmaps"},
		{"create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	config, err := loadConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("listing ConfigMaps: %v, want success", err)
	}
	_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:reader") {
		t.Errorf("listing Secrets: %v, want it to be forbidden to the ServiceAccount", err)
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

// TestRestartAPIServer checks that nothing is lost: objects, users, tokens, the log;
// nor the other components, which are looked for at the end.
func TestRestartAPIServer(t *testing.T) {
	c := start(t, Options{Nodes: 1, AuditLog: true})
	ctx := t.Context()
	for _, args := range [][]string{
		{"create", "namespace", "before"},
		{"create", "serviceaccount", "reader"},
		{"create", "role", "reader", "--verb=get,list", "--resource=configmaps"},
		{"create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	pid := processes(t, c)["kube-apiserver.pid"]
	if err := c.RestartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(ctx, "get", "namespace", "before"); err != nil {
		t.Error(err)
	}
	if _, err := Kubectl(ctx, c.KubectlPath, kubeconfig, c.Dir, "get", "configmaps"); err != nil {
		t.Error(err)
	}
	if processes(t, c)["kube-apiserver.pid"] == pid {
		t.Error("it is still the same process")
	}
	for user, call := range map[string]string{
		"admin":                                "create namespaces", // before
		"system:serviceaccount:default:reader": "list configmaps",   // afterwards
	} {
		events, err := c.AuditEvents(func(event auditv1.Event) bool { return Call(event) == call && event.User.Username == user })
		if err != nil || len(events) != 1 {
			t.Errorf("the audit log has %q of %s %d times, %v; want once", call, user, len(events), err)
		}
	}
}

func TestClustersSideBySide(t *testing.T) {
	clusters := make([]*Cluster, 2)
	var wg sync.WaitGroup
	for i := range clusters {
		wg.Go(func() {
			var err error
			if clusters[i], err = Start(t.Context(), Options{Nodes: 1, Progress: os.Stderr}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, c := range clusters {
		if c == nil {
			continue
		}
		name := fmt.Sprintf("cluster-%d", i)
		if _, err := c.Kubectl(t.Context(), "create", "namespace", name); err != nil {
			t.Error(err)
		}
	}
	for i, c := range clusters {
		if c == nil {
			continue
		}
		namespaces, err := c.Kubectl(t.Context(), "get", "namespaces", "-o", "name")
		if err != nil {
			t.Error(err)
		}
		if strings.Count(namespaces, "cluster-") != 1 || !strings.Contains(namespaces, fmt.Sprintf("cluster-%d", i)) {
			t.Errorf("cluster %d has the namespaces %s", i, namespaces)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestStartFails checks that the error shows what the API server had to say,
// and that nothing is left.
func TestStartFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{APIServerFlags: map[string]string{"no-such-flag": "true"}, Progress: os.Stderr})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want an error that holds the API server's", err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "sample-controller-manager-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStartHeedsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{Progress: os.Stderr}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestComponentDies checks that Stop tells of a component that died by itself.
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
