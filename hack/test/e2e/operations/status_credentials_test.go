// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestStatusSendsOnlyReaderToken replaces the replica by a server, at an address and in a Pod.
// The operator has a client certificate or a token.
func TestStatusSendsOnlyReaderToken(t *testing.T) {
	seen := make(chan *http.Request, 1)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r }))
	other.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	other.StartTLS()
	defer other.Close()
	address, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	standForReplica(t, startKubelet(t, forwardsTo(address.Port())), "other")

	byToken := operator(t)
	waitRights(t, byToken)
	for name, kubeconfig := range map[string]string{"certificate": framework.Cluster().Kubeconfig, "token": byToken} {
		for at, args := range map[string][]string{"address": {"--server=" + other.URL, "--insecure-skip-tls-verify"}, "Pod": {"--pod=other"}} {
			t.Run(name+" "+at, func(t *testing.T) {
				_, stderr, code := runStatus(t, append(args, "--kubeconfig="+kubeconfig)...)
				if want := "Error: decoding the response, which is not from a sample-controller-manager: "; code != 1 || !strings.Contains(stderr, want) {
					t.Fatalf("exit code %d, output %q, want %q", code, stderr, want)
				}
				wantReaderToken(t, <-seen)
			})
		}
	}
}

// wantReaderToken checks that a request has a token of the status reader, valid for 10
// minutes, and no other credential.
func wantReaderToken(t *testing.T, r *http.Request) {
	t.Helper()
	if len(r.TLS.PeerCertificates) > 0 {
		t.Errorf("the replica sees the certificate of %s", r.TLS.PeerCertificates[0].Subject)
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("Authorization has %d parts, want the 3 of a token", len(parts))
	}
	var claims struct {
		Sub      string
		Exp, Iat int64
	}
	framework.DecodePart(t, parts[1], &claims)
	if want := "system:serviceaccount:sample-controller-manager:sample-controller-manager-status-reader"; claims.Sub != want || claims.Exp-claims.Iat != 600 {
		t.Errorf("the replica sees a token of %s for %d s, want %s for 600 s", claims.Sub, claims.Exp-claims.Iat, want)
	}
}

// clientOf returns a client with the credentials of a kubeconfig.
func clientOf(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitRights waits until the API server has seen the rights of an operator.
func waitRights(t *testing.T, kubeconfig string) {
	t.Helper()
	client := clientOf(t, kubeconfig)
	clustertest.WaitUntil(t, "the operator has the Role", func(ctx context.Context) error {
		_, err := client.CoordinationV1().Leases(framework.DaemonName).Get(ctx, framework.DaemonName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// TestStatusWithoutRole runs the command without any rights.
func TestStatusWithoutRole(t *testing.T) {
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "stranger")
	kubeconfig := "--kubeconfig=" + kubeconfigOf(t, ns, "stranger")
	const advice = `403: may not %s in sample-controller-manager; you need the Role sample-controller-manager-status-reader: kubectl create rolebinding sample-controller-manager-status-reader -n sample-controller-manager --role=sample-controller-manager-status-reader --user=<you>`
	wantRefusal(t, "looking up the leader: "+fmt.Sprintf(advice, "get leases"), kubeconfig)
	for _, arg := range []string{"--pod=x", "--server=https://127.0.0.1:1"} {
		wantRefusal(t, `requesting a token of ServiceAccount sample-controller-manager/sample-controller-manager-status-reader: `+fmt.Sprintf(advice, "create serviceaccounts/token"), arg, kubeconfig)
	}
}

// TestOperatorGetsNoOtherToken checks that the Role for operators does not lead to the rights
// of the daemon, whose ServiceAccount is in the same namespace.
func TestOperatorGetsNoOtherToken(t *testing.T) {
	kubeconfig := operator(t)
	waitRights(t, kubeconfig)
	_, err := clientOf(t, kubeconfig).CoreV1().ServiceAccounts(framework.DaemonName).CreateToken(t.Context(),
		framework.DaemonName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a token of the daemon: %v, want it to be forbidden", err)
	}
}

// TestStatusGivesUp queries a server that never answers.
func TestStatusGivesUp(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	began := time.Now()
	wantRefusal(t, `no answer within 2s: Get .*`, "--server=https://"+mute.Addr().String(), "--kubeconfig="+framework.Cluster().Kubeconfig, "--timeout=2s")
	framework.WantSoon(t, "giving up", time.Since(began), 2*time.Second)
}

// TestKubectlPlugin has kubectl find the plugin, and complete its arguments by the script
// that manifests/docs/operate.md shows.
func TestKubectlPlugin(t *testing.T) {
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	scripts := t.TempDir()
	script := "#!/usr/bin/env sh\nkubectl scm __complete \"$@\"\n"
	if err := os.WriteFile(filepath.Join(scripts, "kubectl_complete-scm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{filepath.Dir(framework.Plugin()), filepath.Dir(paths["kubectl"]), scripts, os.Getenv("PATH")}, ":")
	for args, want := range map[string]string{
		"scm --version":                       "kubectl scm version v",
		"scm status --help":                   "Print who leads, what is wrong and what the controllers do: ",
		"__complete scm st":                   "status\tPrint who leads, what is wrong and what the controllers do.\n",
		"__complete scm status --output=js":   "text\njson\n", // the shell filters
		"__complete scm status foo default/a": ":4\n",         // no files
		"__complete scm why fo":               "foo\nicecream\n",
	} {
		command := exec.CommandContext(t.Context(), paths["kubectl"], strings.Fields(args)...)
		command.Env = append(os.Environ(), "PATH="+path)
		if out, err := command.Output(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("kubectl %s: %v, output %q, want %q", args, err, out, want)
		}
	}
}

// TestStatusNamesBadCredentialsOfDaemon asks a replica whose own token the API server does not accept. It cannot verify
// the token that the API server has just issued.
func TestStatusNamesBadCredentialsOfDaemon(t *testing.T) {
	path := kubeconfigOf(t, framework.DaemonName, framework.DaemonName)
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token, user.TokenFile = "bad", ""
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	r := framework.StartReplicaWith(t, path)
	wanted := regexp.MustCompile(`^Error: https://\S+ answers 401 Unauthorized, and its check of the Lease fails: the API server does not accept the credentials of the daemon\. Yours are fine\. Its log says which are rejected\n$`)
	clustertest.WaitUntil(t, "status names the credentials of the daemon", func(context.Context) error {
		_, stderr, code := runStatus(t, "--server="+r.URL, "--insecure-skip-tls-verify", "--kubeconfig="+framework.Cluster().Kubeconfig)
		if code != 1 || !wanted.MatchString(stderr) {
			return fmt.Errorf("exit code %d, output %q", code, stderr)
		}
		return nil
	})
}
