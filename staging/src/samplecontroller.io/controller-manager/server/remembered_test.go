// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// outage is an API server that answers, fails or hangs.
type outage struct {
	http.Handler
	fails, hangs atomic.Bool
	ended        chan struct{}
}

func (o *outage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case o.fails.Load():
		http.Error(w, "etcd is away", http.StatusServiceUnavailable)
	case o.hangs.Load():
		select {
		case <-r.Context().Done():
		case <-o.ended:
		}
	default:
		o.Handler.ServeHTTP(w, r)
	}
}

// TestMetricsAreServedDuringOutage checks that a scraper that the API server accepted before
// is served while that does not answer, and nobody else, and nothing else.
func TestMetricsAreServedDuringOutage(t *testing.T) {
	for name, begin := range map[string]func(*outage, *httptest.Server){
		"fails": func(o *outage, _ *httptest.Server) { o.fails.Store(true) },
		"hangs": func(o *outage, _ *httptest.Server) { o.hangs.Store(true) },
		"gone":  func(_ *outage, api *httptest.Server) { api.CloseClientConnections(); api.Listener.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			o := &outage{Handler: reviews(t), ended: make(chan struct{})}
			api := httptest.NewServer(o)
			t.Cleanup(api.Close)
			t.Cleanup(func() { close(o.ended) })
			server := start(t, uncached(t, api.URL))
			want := func(when, path, user string, code int) {
				t.Helper()
				if got, body := server.get(path, user); got != code {
					t.Errorf("%s: %s as %s: %d, want %d: %s", when, path, user, got, code, body)
				}
			}
			want("before", "/metrics", "admin", http.StatusOK)
			want("before", "/configz", "admin", http.StatusOK)
			want("before", "/metrics", "guest", http.StatusForbidden)
			begin(o, api)
			want("in the outage", "/metrics", "admin", http.StatusOK)
			if name == "hangs" {
				return // the others wait for the timeout of the library
			}
			want("in the outage", "/configz", "admin", http.StatusUnauthorized)
			want("in the outage", "/metrics", "stranger", http.StatusUnauthorized)
			// Authentication is remembered, permission is not: the API server gave none.
			want("in the outage", "/metrics", "guest", http.StatusInternalServerError)
		})
	}
}

// TestRefusalIsNotForgottenInOutage revokes the permission of a scraper before an outage.
func TestRefusalIsNotForgottenInOutage(t *testing.T) {
	o := &outage{Handler: reviews(t)}
	var revoked atomic.Bool
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoked.Load() && r.URL.Path != tokenReviews {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}`))
			return
		}
		o.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	server := start(t, uncached(t, api.URL))
	want := func(when string, code int) {
		t.Helper()
		if got, body := server.get("/metrics", "admin"); got != code {
			t.Errorf("%s: %d, want %d: %s", when, got, code, body)
		}
	}
	want("before", http.StatusOK)
	revoked.Store(true)
	want("without the permission", http.StatusForbidden)
	revoked.Store(false)
	o.fails.Store(true)
	want("in the outage", http.StatusInternalServerError)
	o.fails.Store(false)
	want("after the outage", http.StatusOK)
}

// uncached returns the configuration of a server that asks the API server at url each time.
func uncached(t *testing.T, url string) Config {
	t.Helper()
	o := newOptions(t)
	o.Authentication.CacheTTL, o.Authorization.AllowCacheTTL, o.Authorization.DenyCacheTTL = 0, 0, 0
	o.Authentication.WebhookRetryBackoff.Steps, o.Authorization.WebhookRetryBackoff.Steps = 1, 1
	config, err := o.Config(t.Context(), writeKubeconfig(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return config
}
