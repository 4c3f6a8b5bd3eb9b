// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// statusReader is the role, in the cluster and in the daemon's namespace, for those who
// may see what the controllers do.
const statusReader = "sample-controller-manager-status-reader"

// reader returns a kubeconfig, with a token, of somebody who is bound to both roles and
// to nothing else.
func reader(t *testing.T) (kubeconfig string) {
	t.Helper()
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "reader", statusReader)
	framework.BindRole(t, ns, "reader", framework.DaemonName, statusReader)
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), ns, "reader")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// runStatus runs the subcommand to its end.
func runStatus(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, code = framework.RunCommand(t, append([]string{"status"}, args...)...)
	if line, rest, ok := strings.Cut(stderr, "\n"); ok && strings.Contains(line, "Data race detection enabled") {
		stderr = rest // that is of the build of this test only
	}
	return stdout, stderr, code
}

// waitStatus runs the subcommand until it succeeds, as a role that was just bound takes a
// moment to be known, and returns what it prints.
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

// wantRefusal runs the subcommand and wants it to fail with one line that matches.
func wantRefusal(t *testing.T, pattern string, args ...string) {
	t.Helper()
	stdout, stderr, code := runStatus(t, args...)
	if !regexp.MustCompile(`^Error: `+pattern+`\n$`).MatchString(stderr) || code != 1 || stdout != "" {
		t.Errorf("status %q exits %d and prints %q, %q, want 1 and %q alone", args, code, stdout, stderr, pattern)
	}
}

func TestStatusOfNamedServer(t *testing.T) {
	framework.FreeLease(t)
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName, framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, authority := signed(t)
	r := framework.StartReplicaWith(t, kubeconfig, "--tls-cert-file="+certificate, "--tls-private-key-file="+key).Ready()
	framework.WaitLeader(t, "")
	ns := framework.NewNamespace(t)
	framework.Kinds[0].Create(t, ns, "a", 2)
	framework.Kinds[0].WaitReady(t, ns, "a", 2)
	framework.Kubectl(t, "-n", ns, "create", "deployment", "foreign", "--image=nginx")
	framework.Kinds[0].CreateNaming(t, ns, "b", "foreign")
	framework.Kinds[0].WaitStalled(t, ns, "b")

	byToken := []string{"--server=" + r.URL, "--kubeconfig=" + reader(t), "--certificate-authority=" + authority}
	stdout, stderr := waitStatus(t, byToken...)
	t.Logf("\n%s", stdout)
	if stderr != "" {
		t.Errorf("besides it prints %q", stderr)
	}
	for _, want := range []string{
		`^Process: \S+\nTime:    \S+Z\nLeader:  this process, \S+, leads since \S+Z\n\nCONTROLLER +STATE +FOR +RUNNING +WAITING +DELAYED +FAILING +LAST SUCCESS +REASON\n`,
		`\nfoo-controller +Running `, `\nicecream-controller +Running `, `\nstatus-aggregator-controller +Running `,
		`\nRESOURCE +SERVED +FOR +OBJECTS +LAST SIGN +REASON\n`, `\nfoos.samplecontroller.k8s.io +yes +`, `\npods +yes +`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}

	// By an alias, with a client certificate, a slash too many.
	byCertificate := []string{"--server=" + r.URL + "/", "--kubeconfig=" + framework.Cluster().Kubeconfig, "--insecure-skip-tls-verify"}
	if stdout, _ := waitStatus(t, append(byCertificate, "foo")...); !strings.Contains(stdout, "\nfoo-controller: Running for ") || !regexp.MustCompile(`\nLast syncs of foo-controller:\n  OBJECT .*\n(?s:.*) (foos|deployments) (added|changed) +success`).MatchString(stdout) {
		t.Errorf("of one controller it prints\n%s", stdout)
	}
	stdout, _ = waitStatus(t, append(byToken, "foo", ns+"/b")...)
	t.Logf("\n%s", stdout)
	if !regexp.MustCompile(`^\S+/b, by foo-controller, which is Running\n\n +WANTED +ACTUAL\n(?s).*its owner +Foo "b" +- +<- differs\n.*\nNext: nothing: DeploymentConflict: .*\nLast syncs:\n`).MatchString(stdout) {
		t.Errorf("of one object it prints\n%s", stdout)
	}
	stdout, _ = waitStatus(t, append(byToken, "foo", ns+"/a", "-o", "json")...)
	var e debug.Explanation
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || !e.Found || len(e.Syncs) == 0 {
		t.Errorf("-o json prints %v\n%s", err, stdout)
	}

	wantRefused(t, r.URL, kubeconfig, authority, byToken)
	r.Stop()
}

// wantRefused checks that each wrong invocation ends in an error of one line.
func wantRefused(t *testing.T, server, kubeconfig, authority string, byToken []string) {
	t.Helper()
	wantRefusal(t, `Get "https://127.0.0.1:\d+/debug/controllers": tls: failed to verify certificate: x509: .*; write --certificate-authority=<file>, or --insecure-skip-tls-verify .*`, "--server="+server, "--kubeconfig="+framework.Cluster().Kubeconfig)
	wantRefusal(t, `https://\S+ answers 403 Forbidden: .* ClusterRole sample-controller-manager-status-reader`, "--server="+server, "--kubeconfig="+kubeconfig, "--certificate-authority="+authority)
	wantRefusal(t, `"fooo" is not a known controller \(known: .*`, append(byToken, "fooo")...)
	wantRefusal(t, `"\*" is not a known controller .*`, append(byToken, "*")...)
	wantRefusal(t, `"a" is no object: write <namespace>/<name>, for example default/a`, append(byToken, "foo", "a")...)
	wantRefusal(t, `accepts at most 2 arg.*`, append(byToken, "foo", "a/b", "c")...)
	wantRefusal(t, `--server: "http://127.0.0.1:1" must begin with https://`, "--server=http://127.0.0.1:1", "--kubeconfig="+kubeconfig)
	wantRefusal(t, `--pod and --server exclude each other.*`, append(byToken, "--pod=x")...)
	wantRefusal(t, `--certificate-authority and --insecure-skip-tls-verify exclude each other`, append(byToken, "--insecure-skip-tls-verify")...)
	wantRefusal(t, `--output: "yaml" is not known, must be text or json`, append(byToken, "-o", "yaml")...)
	wantRefusal(t, `--kubeconfig: .*/does/not/exist.*`, "--kubeconfig=/does/not/exist")
	wantRefusal(t, `.*/does/not/exist.*`, "--server="+server, "--kubeconfig="+kubeconfig, "--certificate-authority=/does/not/exist")
	wantRefusal(t, `Get .*: connect: connection refused`, fmt.Sprintf("--server=https://127.0.0.1:%d", framework.FreePort(t)), "--kubeconfig="+kubeconfig)
}

// TestStatusKeepsToken has others answer.
func TestStatusKeepsToken(t *testing.T) {
	token, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), framework.DaemonName, framework.DaemonName)
	if err != nil {
		t.Fatal(err)
	}
	var requests, handshakes atomic.Int32
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer other.Close()
	redirecting := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	redirecting.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { handshakes.Add(1); return nil, nil }}
	redirecting.Config.ErrorLog = nil
	redirecting.StartTLS()
	defer redirecting.Close()

	wantRefusal(t, `.* x509: .*`, "--server="+other.URL, "--kubeconfig="+token)
	wantRefusal(t, `https://\S+ answers 307 Temporary Redirect: .*`, "--server="+redirecting.URL, "--insecure-skip-tls-verify", "--kubeconfig="+token)
	if handshakes.Load() != 1 || requests.Load() != 0 {
		t.Errorf("%d connections to the one that is to be asked, want 1; %d requests to another, want none", handshakes.Load(), requests.Load())
	}

	// One that never answers.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	began := time.Now()
	wantRefusal(t, `no answer within 500ms: Get .*`, "--server=https://"+mute.Addr().String(), "--kubeconfig="+token, "--timeout=500ms")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// signed returns the files of a certificate for this machine and these names, of its key,
// and of the authority that signed it.
func signed(t *testing.T, names ...string) (certificate, key, authority string) {
	t.Helper()
	bundle, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, names)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		t.Fatal(err)
	}
	last, err := cert.EncodeCertificates(certs[len(certs)-1]) // which signed the first
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("tls.crt", bundle), write("tls.key", keyPEM), write("ca.crt", last)
}
