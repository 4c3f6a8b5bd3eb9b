// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	restclient "k8s.io/client-go/rest"
)

func TestClientsShareConnectionUntilItIsRenewed(t *testing.T) {
	var mutex sync.Mutex
	var seen []string // user agent, token and remote address of each request
	addresses := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		addresses[r.RemoteAddr] = true
		seen = append(seen, r.UserAgent()+" "+r.Header.Get("Authorization")+" "+r.URL.Path+" "+r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := &restclient.Config{
		Host: server.URL + "/prefix", BearerToken: "secret", UserAgent: "program",
		TLSClientConfig: restclient.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw})},
	}
	shared, renew, err := Renewable(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(userAgent string) {
		t.Helper()
		own := restclient.CopyConfig(shared)
		own.UserAgent = userAgent
		client, err := restclient.HTTPClientFor(own)
		if err != nil {
			t.Fatal(err)
		}
		// The transport may try the closed connection once more before it notices.
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			response, err := client.Get(own.Host + "/api")
			if err == nil {
				_ = response.Body.Close()
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	get("a")
	get("b")
	if len(addresses) != 1 {
		t.Errorf("two clients have %d connections, want one", len(addresses))
	}
	renew()
	get("a")
	if len(addresses) != 2 {
		t.Errorf("%d connections after the first was closed, want another", len(addresses))
	}
	const rest = " Bearer secret /prefix/api HTTP/2.0"
	if want := []string{"a" + rest, "b" + rest, "a" + rest}; !slices.Equal(seen, want) {
		t.Errorf("requests %q, want %q", seen, want)
	}
}
