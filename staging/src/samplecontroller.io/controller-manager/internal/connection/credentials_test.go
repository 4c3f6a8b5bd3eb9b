// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	restclient "k8s.io/client-go/rest"
)

func TestRejectedTokenIsReloaded(t *testing.T) {
	var accepted atomic.Value
	accepted.Store("old")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+accepted.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	config := &restclient.Config{Host: server.URL, BearerTokenFile: file}
	if err := FollowTokenFile(config); err != nil {
		t.Fatal(err)
	}
	newClient := func() *http.Client {
		client, err := restclient.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	a, b := newClient(), newClient()
	defer a.CloseIdleConnections()
	defer b.CloseIdleConnections()
	want := func(client *http.Client, code int) {
		t.Helper()
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != code {
			t.Errorf("status %d, want %d", response.StatusCode, code)
		}
	}
	want(a, http.StatusOK)
	want(b, http.StatusOK)
	accepted.Store("new")
	want(a, http.StatusUnauthorized)
	want(a, http.StatusUnauthorized) // the file has the old token
	write("new")
	want(a, http.StatusUnauthorized) // the next request reads the file
	want(a, http.StatusOK)
	want(b, http.StatusOK) // the clients share the token
}

func TestMissingTokenFile(t *testing.T) {
	config := &restclient.Config{Host: "https://api.test", BearerTokenFile: filepath.Join(t.TempDir(), "missing")}
	if err := FollowTokenFile(config); err == nil || !strings.Contains(err.Error(), config.BearerTokenFile) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestTokenWithoutFileIsUnchanged(t *testing.T) {
	config := &restclient.Config{Host: "https://api.test", BearerToken: "token"}
	if err := FollowTokenFile(config); err != nil {
		t.Fatal(err)
	}
	if config.WrapTransport != nil || config.BearerToken != "token" {
		t.Errorf("the configuration was changed to %v", config)
	}
}
