// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startAPIServer starts an API server that answers reviews and returns the path of a
// kubeconfig for it.
func startAPIServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(reviews(t))
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

// tokenReviews is the path of the reviews of tokens.
const tokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"

// reviews returns the handler of an API server that knows the users admin and guest, whose
// tokens are their names. Only admin is authorized to do anything.
func reviews(t *testing.T) http.Handler {
	t.Helper()
	review := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch review := object.(type) {
		case *authenticationv1.TokenReview:
			review.Status.Authenticated = review.Spec.Token == "admin" || review.Spec.Token == "guest"
			review.Status.User.Username = review.Spec.Token
		case *authorizationv1.SubjectAccessReview:
			review.Status.Allowed = review.Spec.User == "admin"
		default:
			http.Error(w, "unexpected review", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		encoder := scheme.Codecs.LegacyCodec(authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion)
		if err := encoder.Encode(object, w); err != nil {
			t.Errorf("answering a review: %v", err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+tokenReviews, review)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", review)
	return mux
}

// writeKubeconfig writes a kubeconfig for an API server at url, and returns its path.
func writeKubeconfig(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: url}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test"}},
		CurrentContext: "test",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// newOptions returns options that serve on a free port.
func newOptions(t *testing.T) *Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	o := NewOptions("test-manager", 0)
	o.SecureServing.Listener = listener
	o.Authentication.SkipInClusterLookup = true // this API server publishes no client CA
	return o
}

// newConfig returns the configuration of a server on a free port, with the users of
// startAPIServer.
func newConfig(t *testing.T) Config {
	t.Helper()
	config, err := newOptions(t).Config(t.Context(), startAPIServer(t))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// running is a running server.
type running struct {
	t    *testing.T
	url  string
	stop func()
}

// start serves until the end of the test, or until stop is called. stop waits until nothing is
// served any more.
func start(t *testing.T, config Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wait, err := Start(ctx, config)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	stop := func() { cancel(); wait() }
	t.Cleanup(stop)
	return &running{t, "https://" + config.SecureServing.Listener.Addr().String(), stop}
}

// do sends a request as the given user, or anonymously if user is "". It returns the status
// code and the body of the response.
func (r *running) do(method, path, user, body string) (int, string, error) {
	r.t.Helper()
	return r.doWith(nil, method, path, user, body)
}

// doWith is do with client certificates.
func (r *running) doWith(certificates []tls.Certificate, method, path, user, body string) (int, string, error) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, // self-signed
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if user != "" {
		request.Header.Set("Authorization", "Bearer "+user)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// get returns the status code and the body of path.
func (r *running) get(path, user string) (int, string) {
	r.t.Helper()
	code, body, err := r.do(http.MethodGet, path, user, "")
	if err != nil {
		r.t.Fatalf("GET %s: %v", path, err)
	}
	return code, body
}

// good returns a check that always succeeds.
func good(name string) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error { return nil })
}

// bad returns a check that always fails with reason.
func bad(name, reason string) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error { return errors.New(reason) })
}

// missing returns the path of a file that does not exist.
func missing(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "missing")
	if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s exists", path)
	}
	return path
}
