// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	restclient "k8s.io/client-go/rest"
)

// tokenServer answers as an API server to a program with the token "program".
type tokenServer struct {
	user     string // of the program
	lifetime int64  // of tokens, in seconds

	mutex    sync.Mutex
	issued   int    // tokens
	rejected string // a token
	requests []string
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		review := authenticationv1.SelfSubjectReview{}
		review.Status.UserInfo.Username = s.user
		_ = json.NewEncoder(w).Encode(review)
	case strings.HasSuffix(r.URL.Path, "/token"):
		s.issued++
		account := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/token")
		request := authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &s.lifetime}}
		request.Status.Token = fmt.Sprintf("%s-%d", account, s.issued)
		_ = json.NewEncoder(w).Encode(request)
	case token == s.rejected:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		s.requests = append(s.requests, r.Method+" with "+token)
	}
}

// start starts the server, and returns the accounts of a program and its configuration.
func (s *tokenServer) start(t *testing.T) (*Accounts, *restclient.Config) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &restclient.Config{Host: server.URL, BearerToken: "program",
		ContentConfig: restclient.ContentConfig{ContentType: "application/json"}}
	accounts, err := NewAccounts(t.Context(), config, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return accounts, config
}

// clientOf returns a client of a controller.
func clientOf(t *testing.T, accounts *Accounts, config *restclient.Config, controller string) *http.Client {
	t.Helper()
	config = restclient.CopyConfig(config)
	config.Wrap(accounts.Wrap(controller))
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// send sends a request, and returns how the server saw it.
func (s *tokenServer) send(t *testing.T, client *http.Client, config *restclient.Config, method string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+"/object", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.requests[len(s.requests)-1]
}

func TestControllerWritesAsAccount(t *testing.T) {
	server := &tokenServer{user: "system:serviceaccount:ns:manager", lifetime: 3600}
	accounts, config := server.start(t)
	a, b := clientOf(t, accounts, config, "a-controller"), clientOf(t, accounts, config, "b-controller")
	other := clientOf(t, accounts, config, "a-controller")
	const tokenA, tokenB = "ns/serviceaccounts/manager-a-controller-1", "ns/serviceaccounts/manager-b-controller-2"
	for _, sent := range []struct {
		client       *http.Client
		method, want string
	}{
		{a, http.MethodGet, "GET with program"},
		{a, http.MethodPatch, "PATCH with " + tokenA},
		{b, http.MethodPost, "POST with " + tokenB},
		{a, http.MethodDelete, "DELETE with " + tokenA},
		{other, http.MethodPut, "PUT with " + tokenA}, // the clients of a controller share its token
		{b, http.MethodGet, "GET with program"},
	} {
		if got := server.send(t, sent.client, config, sent.method); got != sent.want {
			t.Errorf("got %q, want %q", got, sent.want)
		}
	}

	server.mutex.Lock()
	server.rejected = tokenA
	server.mutex.Unlock()
	if got := server.send(t, a, config, http.MethodPatch); got != "401 Unauthorized" {
		t.Errorf("with a token that is no longer valid: %q", got)
	}
	if got, want := server.send(t, other, config, http.MethodPatch), "PATCH with ns/serviceaccounts/manager-a-controller-3"; got != want {
		t.Errorf("after the token was rejected: %q, want %q", got, want)
	}
}

// A GET that executes a command in a Pod is a write.
func TestControllerExecutesCommandsAsAccount(t *testing.T) {
	server := &tokenServer{user: "system:serviceaccount:ns:manager", lifetime: 3600}
	accounts, config := server.start(t)
	client := clientOf(t, accounts, config, "a-controller")
	config.Host += "/api/v1/namespaces/ns/pods/db/exec?command=promote&of="
	if got, want := server.send(t, client, config, http.MethodGet), "GET with ns/serviceaccounts/manager-a-controller-1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	server := &tokenServer{user: "system:serviceaccount:ns:manager", lifetime: 1}
	accounts, config := server.start(t)
	client := clientOf(t, accounts, config, "a-controller")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := server.send(t, client, config, http.MethodPatch)
	for server.send(t, client, config, http.MethodPatch) == first {
		if ctx.Err() != nil {
			t.Fatal("a token with a lifetime of 1s was used for a minute")
		}
	}
}

func TestAccountErrors(t *testing.T) {
	for _, tc := range []struct{ user, want string }{
		{"kubernetes-admin", `the program must run as a ServiceAccount, but runs as "kubernetes-admin"`},
		{"system:node:a", `the program must run as a ServiceAccount, but runs as "system:node:a"`},
	} {
		accounts, _ := (&tokenServer{user: tc.user}).start(t)
		if err := accounts.Check("a-controller"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.user, err, tc.want)
		}
	}
	accounts, _ := (&tokenServer{user: "system:serviceaccount:ns:manager"}).start(t)
	if err := accounts.Check("b-controller"); err != nil { // so that the account of the program is known
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	accounts.ctx = ctx
	want := "requesting a token of ServiceAccount ns/manager-a-controller, as which a-controller writes: "
	if err := accounts.Check("a-controller"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without an answer: %v, want %q", err, want)
	}
	if err, since := accounts.Failure("a-controller"); err == nil || since.IsZero() {
		t.Errorf("failure %v since %v", err, since)
	}
	accounts.ctx = t.Context()
	accounts.accounts["a-controller"].last = time.Now().Add(-forgetAfter)
	if err, _ := accounts.Failure("a-controller"); err != nil {
		t.Errorf("failure %v after no token was needed for a while", err)
	}
	err := accounts.Check("a-controller")
	if failure, _ := accounts.Failure("a-controller"); err != nil || failure != nil {
		t.Errorf("after it answered: %v, %v", err, failure)
	}
}
