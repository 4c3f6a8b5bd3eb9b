// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"samplecontroller.io/controller-manager/debug"
)

// execute runs the command.
func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	command := newCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs(args)
	command.SetContext(t.Context())
	err = command.Execute()
	return out.String(), err
}

// check compares an error with what it must contain, "" for no error.
func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestInvalidArguments(t *testing.T) {
	for args, want := range map[string]string{
		"a b/c d":                      `too many arguments ["b/c" "d"]; usage: status [controller]`,
		"foo a/b":                      "status prints controllers; for one object use: kubectl scm why foo a/b",
		"-n a":                         "--namespace is the namespace of objects, and this names none: the namespace of the daemon is --daemon-namespace",
		"--sever=a":                    "unknown flag: --sever; see kubectl scm status --help",
		"default/a":                    `"default/a" is not a controller; usage: status [controller]`,
		"--output=yaml":                `invalid --output "yaml": must be text or json`,
		"--server=http://127.0.0.1:1":  `invalid --server "http://127.0.0.1:1": must begin with https://`,
		"--server=https://a --pod=b":   "--pod and --server are mutually exclusive",
		"--certificate-authority=a":    "require --server",
		"--insecure-skip-tls-verify":   "require --server",
		"--timeout=0":                  "invalid --timeout 0s: must be positive",
		"--kubeconfig=/does/not/exist": "loading the kubeconfig: ",
		"--server=https://a --insecure-skip-tls-verify --certificate-authority=b": "--certificate-authority and --insecure-skip-tls-verify are mutually exclusive",
	} {
		stdout, err := execute(t, append([]string{"status"}, strings.Fields(args)...)...)
		check(t, err, want)
		if stdout != "" {
			t.Errorf("%q prints %q", args, stdout)
		}
	}
}

func TestVersion(t *testing.T) {
	stdout, err := execute(t, "version")
	if flag, _ := execute(t, "--version"); err != nil || stdout != flag || !strings.HasPrefix(stdout, "kubectl scm version v") {
		t.Errorf("version prints %q, %v; --version prints %q", stdout, err, flag)
	}
}

// operator returns a kubeconfig with the context "operator". It has a client certificate and
// the namespace "elsewhere". Its API server grants a token.
func operator(t *testing.T) (kubeconfig string) {
	t.Helper()
	apiServer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r) // it has no objects and no Events
			return
		}
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/sample-controller-manager/serviceaccounts/sample-controller-manager-status-reader/token" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if len(r.TLS.PeerCertificates) == 0 || r.Header.Get("Impersonate-User") != "jane" {
			t.Errorf("the API server sees %d certificates and user %q, want the operator's", len(r.TLS.PeerCertificates), r.Header.Get("Impersonate-User"))
		}
		w.Header().Set("Content-Type", "application/json")
		response := authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "reader-token"}}
		response.APIVersion, response.Kind = "authentication.k8s.io/v1", "TokenRequest"
		_ = json.NewEncoder(w).Encode(response) // the client reports errors
	}))
	apiServer.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	apiServer.StartTLS()
	t.Cleanup(apiServer.Close)
	certificate, key, err := cert.GenerateSelfSignedCertKey("operator", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"cluster": {Server: apiServer.URL, InsecureSkipTLSVerify: true}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"operator": {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:  map[string]*clientcmdapi.Context{"operator": {Cluster: "cluster", AuthInfo: "operator", Namespace: "elsewhere"}},
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// startReplica starts a server that responds like a replica.
func startReplica(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	replica := httptest.NewUnstartedServer(handler)
	replica.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	replica.StartTLS()
	t.Cleanup(replica.Close)
	return replica.URL
}

// TestReplicaSeesOnlyReaderToken gives the command all kinds of kubectl credentials.
func TestReplicaSeesOnlyReaderToken(t *testing.T) {
	seen := make(chan http.Header, 1)
	server := startReplica(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			t.Errorf("the replica sees the certificate of %s", r.TLS.PeerCertificates[0].Subject)
		}
		seen <- r.Header
		fmt.Fprintln(w, `{"leader": "me"}`)
	})
	stdout, err := execute(t, "status", "--server="+server, "--insecure-skip-tls-verify",
		"--kubeconfig="+operator(t), "--context=operator", "--token=operator-token", "--as=jane", "--as-group=admins")
	if err != nil || !strings.Contains(stdout, "\nLeader: me\n") {
		t.Fatalf("%v\n%s", err, stdout)
	}
	header := <-seen
	header.Del("User-Agent")
	want := http.Header{"Authorization": {"Bearer reader-token"}, "Accept": {"application/json"}, "Accept-Encoding": {"gzip"}}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("unexpected header at the replica (-want +got):\n%s", diff)
	}
}

func TestResponses(t *testing.T) {
	page := debug.Explanation{Controller: "foo-controller", Object: "a/b", State: "Running"}
	page.Next = "nothing"
	kubeconfig := operator(t)
	for name, test := range map[string]struct {
		code                 int
		answer, output, want string
		failure              string
	}{
		"absent":       {code: 200, want: "a/b: foo-controller is Running\n\nnothing\n", failure: "object not found"},
		"absent, JSON": {code: 200, output: "json", want: "{\n  \"controller\": \"foo-controller\"", failure: "object not found"},
		"text":         {code: 200, answer: `{"controller":"foo-controller","object":"a/b","state":"Running","found":true,"next":"nothing"}`, want: "a/b: foo-controller is Running\n"},
		"JSON":         {code: 200, output: "json", answer: `{"controller":"foo-controller","found":true}`, want: "{\n  \"controller\": \"foo-controller\""},
		"another page": {code: 200, answer: "<html>", failure: "decoding the response, which is not from a sample-controller-manager"},
		"unauthorized": {code: 401, failure: "answers 401 Unauthorized, though the API server has just issued the token: it belongs to another cluster, which --context selects, or the API server does not accept the credentials of the daemon"},
		"forbidden":    {code: 403, failure: "answers 403 Forbidden: ServiceAccount sample-controller-manager-status-reader may not get /debug/controllers/foo/a/b; apply manifests/rbac of this version"},
		"not found":    {code: 404, answer: "\"fooo\" is not a known controller\n", failure: `answers 404 Not Found: "fooo" is not a known controller`},
		"redirect":     {code: 307, failure: "answers 307 Temporary Redirect: "},
	} {
		t.Run(name, func(t *testing.T) {
			server := startReplica(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/debug/controllers/foo/a/b" && r.URL.Path != "/readyz" {
					t.Errorf("GET %s", r.URL)
				}
				w.Header().Set("Location", "https://127.0.0.1:1")
				w.WriteHeader(test.code)
				if test.answer == "" {
					_ = json.NewEncoder(w).Encode(page) // the client reports errors
					return
				}
				fmt.Fprint(w, test.answer)
			})
			args := []string{"why", "foo", "a/b", "--server=" + server + "/", "--insecure-skip-tls-verify", "--kubeconfig=" + kubeconfig, "--context=operator", "--as=jane"}
			if test.output != "" {
				args = append(args, "-o", test.output)
			}
			stdout, err := execute(t, args...)
			check(t, err, test.failure)
			if !strings.HasPrefix(stdout, test.want) || test.want == "" && stdout != "" {
				t.Errorf("stdout %q, want %q", stdout, test.want)
			}
		})
	}
}

// TestWatchAsksAgain watches until the second request, and is interrupted then.
func TestWatchAsksAgain(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var requests atomic.Int32
	server := startReplica(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 2 {
			interrupt()
		}
		fmt.Fprintln(w, `{"leader": "me"}`)
	})
	var out bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetArgs([]string{"status", "--watch", "--server=" + server, "--insecure-skip-tls-verify", "--kubeconfig=" + operator(t), "--context=operator", "--as=jane"})
	if err := command.ExecuteContext(ctx); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	if requests.Load() != 2 || !strings.Contains(out.String(), "\nLeader: me\n") || !strings.Contains(out.String(), "\nAt ") {
		t.Errorf("%d requests, want 2; output\n%s", requests.Load(), out.String())
	}
}
