// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// operator returns a kubeconfig with a token of a user who has the Role for operators and no
// other rights.
func operator(t *testing.T) (kubeconfig string) {
	t.Helper()
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "operator")
	framework.BindRole(t, ns, "operator", framework.DaemonName, framework.StatusReader)
	return kubeconfigOf(t, ns, "operator")
}

// viewer is operator for a user who may also read all objects, through Kubernetes' own role.
func viewer(t *testing.T) (kubeconfig string) {
	t.Helper()
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "viewer", "view")
	framework.BindRole(t, ns, "viewer", framework.DaemonName, framework.StatusReader)
	return kubeconfigOf(t, ns, "viewer")
}

// kubeconfigOf returns a kubeconfig with a token of a ServiceAccount.
func kubeconfigOf(t *testing.T, ns, name string) string {
	t.Helper()
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// runStatus runs the subcommand and waits for it.
func runStatus(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return framework.RunPlugin(t, append([]string{"status"}, args...)...)
}

// waitStatus runs the subcommand until it succeeds, because a newly bound role takes a moment
// to apply. It returns the output.
func waitStatus(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	clustertest.WaitUntil(t, fmt.Sprintf("status %q succeeds", args), func(context.Context) error {
		var code int
		if stdout, stderr, code = runStatus(t, args...); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	return stdout, stderr
}

// wantRefusal runs the subcommand and checks that it fails with one line that matches.
func wantRefusal(t *testing.T, pattern string, args ...string) {
	t.Helper()
	stdout, stderr, code := runStatus(t, args...)
	if !regexp.MustCompile(`^Error: `+pattern+`\n$`).MatchString(stderr) || code != 1 || stdout != "" {
		t.Errorf("status %q: exit code %d, output %q, %q, want 1 and only %q", args, code, stdout, stderr, pattern)
	}
}

func TestStatusOfNamedServer(t *testing.T) {
	framework.FreeLease(t)
	ca := framework.NewAuthority(t, "serving-ca")
	authority := ca.File(t)
	certificate, key := ca.Sign(t, "daemon", time.Now().AddDate(1, 0, 0)).Files(t)
	r := framework.StartReplicaWith(t, kubeconfigOf(t, framework.DaemonName, framework.DaemonName), "--tls-cert-file="+certificate,
		"--tls-private-key-file="+key).Ready()
	framework.WaitLeader(t, "")
	ns := framework.NewNamespace(t)
	framework.Kinds[0].Create(t, ns, "a", 2)
	framework.Kinds[0].WaitReady(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=nginx")
	framework.Kinds[0].CreateNaming(t, ns, "b", "foreign")
	framework.Kinds[0].WaitStalled(t, ns, "b")

	byToken := []string{"--server=" + r.URL, "--kubeconfig=" + operator(t), "--certificate-authority=" + authority}
	stdout, stderr := waitStatus(t, byToken...)
	t.Logf("\n%s", stdout)
	if stderr != "" {
		t.Errorf("standard error %q, want none", stderr)
	}
	for _, want := range []string{
		`^sample-controller-manager v\S+\nLeader: this process, \S+, leads since \S+Z\nProblems: none\n\nCONTROLLER +STATE +FOR +RUN +WAIT +DELAY +FAIL +LAST\n`,
		`\nfoo-controller +Running `, `\nicecream-controller +Running `, `\nstatus-aggregator-controller +Running `,
		`\nRESOURCE +SERVED +FOR +OBJECTS +LAST SIGN\n`, `\nfoos.samplecontroller.k8s.io +yes +`, `\npods +yes +`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}

	// With an alias, a client certificate and a redundant slash.
	byCertificate := []string{"--server=" + r.URL + "/", "--kubeconfig=" + framework.Cluster().Kubeconfig, "--insecure-skip-tls-verify"}
	if stdout, _ := waitStatus(t, append(byCertificate, "foo")...); !strings.Contains(stdout, "\nfoo-controller: Running for ") ||
		!regexp.MustCompile(`\nLast syncs of foo-controller:\n  OBJECT .*\n(?s:.*) (foos|deployments) (added|changed) +success`).MatchString(stdout) {
		t.Errorf("of one controller it prints\n%s", stdout)
	}
	byToken[1] = "--kubeconfig=" + viewer(t)
	stdout, stderr, code := framework.RunPlugin(t, append([]string{"why", "foo", ns + "/b"}, byToken...)...)
	t.Logf("\n%s", stdout)
	if code != 0 || !regexp.MustCompile(`^\S+/b: foo-controller is Running\n\n +WANTED +ACTUAL\n(?s).*its owner +Foo "b" +- +<- differs\n.*\nNext: nothing: DeploymentConflict: .*\nLast syncs:\n.*\nEvents:\n +\S+ ago Warning ErrResourceExists: `).MatchString(stdout) {
		t.Errorf("of one object it prints, exit code %d\n%s%s", code, stdout, stderr)
	}
	stdout, _, _ = framework.RunPlugin(t, append([]string{"why", "foo", "a", "-n", ns, "-o", "json"}, byToken...)...)
	var e debug.Explanation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || !e.Found || len(e.Syncs) == 0 {
		t.Errorf("-o json prints %v\n%s", err, stdout)
	}

	wantRefused(t, r.URL)
	r.Stop()
}

// wantRefused checks that an invocation without connection ends with a one-line error.
// cmd/kubectl-scm tests the others.
func wantRefused(t *testing.T, server string) {
	t.Helper()
	admin := "--kubeconfig=" + framework.Cluster().Kubeconfig
	wantRefusal(t, `Get "https://127.0.0.1:\d+/debug/controllers\?limit=10": tls: failed to verify certificate: x509: .*; use --certificate-authority=<file>, or --insecure-skip-tls-verify .*`, "--server="+server, admin)
	wantRefusal(t, `Get .*: connect: connection refused`, fmt.Sprintf("--server=https://127.0.0.1:%d", framework.FreePort(t)), admin)
}
