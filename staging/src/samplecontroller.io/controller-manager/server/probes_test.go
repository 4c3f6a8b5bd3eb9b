// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestVerboseNamesEachCheck(t *testing.T) {
	config := newConfig(t)
	config.Healthz = []healthz.HealthChecker{good("leaderElection"), good("foo-controller"), bad("bar-controller", "out of order")}
	config.Readyz = []healthz.HealthChecker{good("informer-sync")}
	config.Notes = func() []string { return []string{"leader: nobody"} }
	server := start(t, config)
	tests := map[string]struct {
		code int
		body string
	}{
		"/readyz":          {http.StatusOK, "ok"},
		"/readyz?verbose":  {http.StatusOK, "[+]informer-sync ok\nreadyz check passed\nleader: nobody\n"},
		"/livez?verbose":   {http.StatusOK, "[+]ping ok\nlivez check passed\nleader: nobody\n"},
		"/healthz?verbose": {http.StatusInternalServerError, "[+]leaderElection ok\n[+]foo-controller ok\n[-]bar-controller failed: reason withheld\nhealthz check failed\nleader: nobody\n"},
		"/healthz?verbose&exclude=bar-controller": {http.StatusOK, "[+]leaderElection ok\n[+]foo-controller ok\n[+]bar-controller excluded: ok\nhealthz check passed\nleader: nobody\n"},
		"/healthz/foo-controller":                 {http.StatusOK, "ok"},
		"/healthz/leaderElection":                 {http.StatusOK, "ok"},
		"/healthz/bar-controller":                 {http.StatusInternalServerError, "internal server error: out of order\n"},
	}
	for path, tc := range tests {
		code, body := server.get(path, "")
		if code != tc.code {
			t.Errorf("%s: %d, want %d", path, code, tc.code)
		}
		if diff := cmp.Diff(tc.body, body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestEachProbeHasChecksOfItsOwn(t *testing.T) {
	const ok, failed = http.StatusOK, http.StatusInternalServerError
	sick := []healthz.HealthChecker{good("fine"), bad("sick", "out of order")}
	tests := map[string]struct {
		change func(*Config)
		want   map[string]int
	}{
		"healthz fails alone": {func(c *Config) { c.Healthz = sick }, map[string]int{"/healthz": failed, "/livez": ok, "/readyz": ok}},
		"livez fails alone":   {func(c *Config) { c.Livez = sick }, map[string]int{"/healthz": ok, "/livez": failed, "/readyz": ok}},
		"readyz fails alone":  {func(c *Config) { c.Readyz = sick }, map[string]int{"/healthz": ok, "/livez": ok, "/readyz": failed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t)
			tc.change(&config)
			server := start(t, config)
			for path, want := range tc.want {
				if code, _ := server.get(path, ""); code != want {
					t.Errorf("%s: %d, want %d", path, code, want)
				}
			}
		})
	}
}
