// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestVerboseListsChecks(t *testing.T) {
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
		"/readyz?verbose":  {http.StatusOK, "[+]informer-sync ok\nreadyz check passed\n"},
		"/livez?verbose":   {http.StatusOK, "[+]ping ok\nlivez check passed\n"},
		"/healthz?verbose": {http.StatusInternalServerError, "[+]leaderElection ok\n[+]foo-controller ok\n[-]bar-controller failed: reason withheld\nhealthz check failed\n"},
		"/healthz?verbose&exclude=bar-controller": {http.StatusOK, "[+]leaderElection ok\n[+]foo-controller ok\n[+]bar-controller excluded: ok\nhealthz check passed\n"},
		"/healthz/foo-controller":                 {http.StatusOK, "ok"},
		"/healthz/leaderElection":                 {http.StatusOK, "ok"},
		"/healthz/bar-controller":                 {http.StatusInternalServerError, "internal server error: reason withheld\n"},
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

func TestProbesHaveSeparateChecks(t *testing.T) {
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

func TestReasonsNeedAuthorization(t *testing.T) {
	config := newConfig(t)
	// A response of the API server that quotes a value of the object.
	const reason = `Thing "a" is invalid: spec.image: Invalid value: "hunter2": is not an image`
	config.Livez = []healthz.HealthChecker{good("fine"), bad("sick", reason)}
	config.Notes = func() []string { return []string{"leader: somebody"} }
	server := start(t, config)
	const shown = "[+]fine ok\n[-]sick failed: reason withheld\nlivez check failed\n"
	for path, want := range map[string]struct{ others, authorised string }{
		"/livez":         {shown, shown},
		"/livez?verbose": {shown, shown + "sick: " + reason + "\nleader: somebody\n"},
		"/livez/sick":    {"internal server error: reason withheld\n", "internal server error: " + reason + "\n"},
	} {
		for user, want := range map[string]string{"": want.others, "guest": want.others, "admin": want.authorised} {
			code, body := server.get(path, user)
			if diff := cmp.Diff(want, body); code != http.StatusInternalServerError || diff != "" {
				t.Errorf("%s as %q: %d (-want +got):\n%s", path, user, code, diff)
			}
		}
	}
}

func TestReasonsNeedAccessToCheckPath(t *testing.T) {
	for path, want := range map[string]string{"/readyz": "/readyz/", "/readyz/informer-sync": "/readyz/informer-sync"} {
		for name, allowed := range map[string]bool{"somebody": true, user.Anonymous: false} {
			asked := ""
			may := maySeeReasons(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision,
				string, error) {
				asked = a.GetVerb() + " " + a.GetPath()
				return authorizer.DecisionAllow, "", nil
			}))
			r := httptest.NewRequest(http.MethodHead, path, nil)
			r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name}))
			if got := may(r); got != allowed || allowed && asked != "get "+want {
				t.Errorf("%s of %s: %t by %q, want %t by get %s", path, name, got, asked, allowed, want)
			}
		}
	}
	if maySeeReasons(nil)(httptest.NewRequest(http.MethodGet, "/readyz", nil)) {
		t.Error("reasons are shown without an authorizer and a user")
	}
}

func TestChecksRunOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		checks, failures := withheld([]healthz.HealthChecker{healthz.NamedCheck("slow", func(*http.Request) error {
			return fmt.Errorf("failure %d", calls.Add(1))
		})}, func(*http.Request) bool { return true })
		for second := range 3 {
			var probes sync.WaitGroup
			for range 1000 {
				probes.Go(func() {
					_ = checks[0].Check(httptest.NewRequest(http.MethodGet, "/healthz", nil))
					_ = checks[0].Check(httptest.NewRequest(http.MethodGet, "/healthz/slow", nil))
					failures(nil)
				})
			}
			probes.Wait()
			if got := calls.Load(); got != int32(second)+1 {
				t.Errorf("check ran %d times in %d seconds", got, second+1)
			}
			time.Sleep(probeCache)
		}
	})
}
