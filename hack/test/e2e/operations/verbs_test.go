// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// wantPlugin runs the plugin until it ends with the exit code and an output that matches, because a newly bound role
// takes a moment to apply. No line is longer than 80 columns, except a command to copy.
func wantPlugin(t *testing.T, code int, pattern string, args ...string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("kubectl scm %q", args), func(context.Context) error {
		stdout, stderr, got := framework.RunPlugin(t, args...)
		if got != code || !regexp.MustCompile(pattern).MatchString(stdout) {
			return fmt.Errorf("exit code %d, want %d; output, which must match %s:\n%s%s", got, code, pattern, stdout, stderr)
		}
		for l := range strings.Lines(stdout) {
			if len([]rune(strings.TrimSuffix(l, "\n"))) > 80 && !strings.HasPrefix(strings.TrimSpace(l), "kubectl ") {
				return fmt.Errorf("longer than 80 columns: %s", l)
			}
		}
		return nil
	})
}

// TestPluginAsksLeader uses the verbs that ask the leader's Pod or the API server about it.
func TestPluginAsksLeader(t *testing.T) {
	r, host, node := startLeader(t)
	standForReplica(t, node, host)
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "operator", "view")
	framework.BindRole(t, ns, "operator", framework.DaemonName, framework.StatusReader)
	framework.BindRole(t, ns, "operator", framework.DaemonName, framework.DaemonName+"-log-level")
	kubeconfig := "--kubeconfig=" + kubeconfigOf(t, ns, "operator")

	wantPlugin(t, 0, `^Leader: `+regexp.QuoteMeta(host)+` for \S+, renewed \S+ ago\nChanges, as far as there are Events:\n(  +\S+ ago  \S+ .*\n)*  +\S+ ago  \S+ became leader\n$`, "leader", kubeconfig)
	wantPlugin(t, 0, `^pod/`+regexp.QuoteMeta(host)+`\n$`, "leader", "-o", "name", kubeconfig)

	wantPlugin(t, 0, `verbosity to 4`, "log-level", "4", kubeconfig)
	framework.Kinds[0].Create(t, ns, "a", 1)
	r.WaitLog(`"Synced" controller="foo-controller" key="` + ns + `/a"`)

	framework.Kinds[0].WaitReady(t, ns, "a", 1)
	framework.Kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=nginx")
	framework.Kinds[0].CreateNaming(t, ns, "b", "foreign")
	framework.Kinds[0].WaitStalled(t, ns, "b")
	wantPlugin(t, 0, `^Foo `+ns+`/b: Stalled DeploymentConflict for \S+, 0 of 0 available\n    (.*\n)+    Next: set another deploymentName, or do what the message says\n1 of 2 objects are Ready\.\n$`, "objects", "-n", ns, kubeconfig)
	wantPlugin(t, 1, `^`+ns+`/c: foo-controller is Running\n\nnothing: the cache has no Foo `, "why", "foo", ns+"/c", kubeconfig)
	wantPlugin(t, 1, `^$`, "objects", "-n", ns, "--kubeconfig="+operator(t))

	// Without a replica, the API server knows something.
	r.Stop()
	wantPlugin(t, 1, `^Foo `+ns+`/b: Stalled, as its status says; no replica of the daemon answers\n\nReason:  DeploymentConflict\n(?s).*\nEvents:\n`, "why", "foo", "b", "-n", ns, kubeconfig)
	wantPlugin(t, 1, `^Leader: nobody leads\n`, "leader", kubeconfig)
}

// holdLease makes the Pod with a name the leader, without a process. The Lease lasts until the end of the test.
func holdLease(t *testing.T, pod string) {
	t.Helper()
	leases := framework.Kube().CoordinationV1().Leases(framework.DaemonName)
	_ = leases.Delete(t.Context(), framework.DaemonName, metav1.DeleteOptions{}) // there may be none
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: framework.DaemonName}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(pod + "_1"), LeaseDurationSeconds: ptr.To[int32](15),
		AcquireTime: &metav1.MicroTime{Time: time.Now()}, RenewTime: &metav1.MicroTime{Time: time.Now()},
	}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// writeLine appends a line to a log, as a container runtime does.
func writeLine(t *testing.T, path, line string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "%s stderr F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line); err != nil {
		t.Fatal(err)
	}
}

// TestLogsFollowLeader follows the logs of two Pods while one after the other leads.
func TestLogsFollowLeader(t *testing.T) {
	framework.FreeLease(t)
	t.Cleanup(func() {
		if err := framework.Kube().CoordinationV1().Leases(framework.DaemonName).Delete(context.WithoutCancel(t.Context()),
			framework.DaemonName, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	var configuration string
	logs := t.TempDir()
	for _, pod := range []string{"first", "second"} {
		file := filepath.Join(logs, pod)
		writeLine(t, file, "a line of the "+pod)
		configuration += fmt.Sprintf(`
---
kind: Logs
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: %s, namespace: %s}
spec:
  logs:
  - containers: [%[2]s]
    logsFile: %s
    follow: true
`, pod, framework.DaemonName, file)
	}
	node := startKubelet(t, strings.TrimPrefix(configuration, "\n---"))
	standForReplica(t, node, "first")
	standForReplica(t, node, "second")
	kubeconfig := operator(t)
	waitRights(t, kubeconfig)
	holdLease(t, "first")
	wantPlugin(t, 0, `^a line of the first\n$`, "logs", "--kubeconfig="+kubeconfig)

	plugin := framework.StartProgram(t, framework.Plugin(), "logs", "-f", "--kubeconfig="+kubeconfig)
	plugin.WaitLog("Log of Pod sample-controller-manager/first\na line of the first\n")
	holdLease(t, "second")
	plugin.WaitLog("Log of Pod sample-controller-manager/second\n")
	writeLine(t, filepath.Join(logs, "second"), "another line of the second")
	plugin.WaitLog("another line of the second\n")
	// Of the time before it led, nothing is printed.
	if log := plugin.Log.String(); strings.Contains(log, "a line of the second") {
		t.Errorf("it printed\n%s", log)
	}
	// The Pod of a leader that has crashed may be gone before another one leads.
	holdLease(t, "gone")
	plugin.WaitLog("Log of Pod sample-controller-manager/gone\n")
	holdLease(t, "first")
	plugin.WaitLogged(2, "Log of Pod sample-controller-manager/first\n")
	plugin.Signal(os.Interrupt)
	plugin.WantExit(0)
}

// TestPreflightInPod runs the daemon's preflight as a command in a Pod, whose container has the flags.
func TestPreflightInPod(t *testing.T) {
	framework.FreeLease(t)
	node := startKubelet(t, `
kind: ClusterExec
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: replicas}
spec:
  execs:
  - local: {}
`)
	credentials := kubeconfigOf(t, framework.DaemonName, framework.DaemonName)
	standForReplica(t, node, "replica", framework.Binary(), "--kubeconfig="+credentials)
	admin := "--kubeconfig=" + framework.Cluster().Kubeconfig
	const lease = "--leader-elect-resource-namespace=" + framework.DaemonName
	wantPlugin(t, 0, `^OK    API server\n      https://(?s).*\nFailed: 0\. `, "preflight", "--pod=replica", admin, "--", lease)
	// The flag is missing, so the Lease would be in kube-system.
	framework.ExpectDenials(t, framework.ByDaemon, cluster.InNamespace(metav1.NamespaceSystem))
	wantPlugin(t, 1, `\nFAIL  permissions: leader election\n(?s).*\nFailed: [1-9]`, "preflight", "--pod=replica", admin)

	operator := operator(t)
	waitRights(t, operator)
	stdout, stderr, code := framework.RunPlugin(t, "preflight", "--pod=replica", "--kubeconfig="+operator)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "403: may not create pods/exec in sample-controller-manager\n") {
		t.Errorf("without the right: exit code %d, output %q, %q", code, stdout, stderr)
	}
}
