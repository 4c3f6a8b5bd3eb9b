// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
)

// all returns a configuration with all endpoints.
func all(t *testing.T) Config {
	t.Helper()
	config := newConfig(t)
	config.Flags = flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{}}
	config.Version = compatibility.NewEffectiveVersionFromString("1.37", "", "")
	config.Healthz = []healthz.HealthChecker{good("foo-controller")}
	return config
}

func TestAccess(t *testing.T) {
	const ok, unauthorized, forbidden, absent = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusNotFound
	server := start(t, all(t))
	tests := map[string]struct {
		anonymous, stranger, guest, admin int
	}{
		"/healthz":                {ok, unauthorized, ok, ok},
		"/healthz?verbose":        {ok, unauthorized, ok, ok},
		"/healthz/foo-controller": {ok, unauthorized, ok, ok},
		"/healthz/unknown":        {absent, unauthorized, absent, absent},
		"/livez":                  {ok, unauthorized, ok, ok},
		"/livez/ping":             {ok, unauthorized, ok, ok},
		"/readyz":                 {ok, unauthorized, ok, ok},
		"/readyz/ping":            {ok, unauthorized, ok, ok},
		"/metrics":                {unauthorized, unauthorized, forbidden, ok},
		"/metrics/slis":           {unauthorized, unauthorized, forbidden, ok},
		"/configz":                {unauthorized, unauthorized, forbidden, absent},
		"/statusz":                {unauthorized, unauthorized, forbidden, ok},
		"/flagz":                  {unauthorized, unauthorized, forbidden, ok},
		"/debug/pprof/":           {unauthorized, unauthorized, forbidden, ok},
		"/debug/pprof/goroutine":  {unauthorized, unauthorized, forbidden, ok},
		"/":                       {unauthorized, unauthorized, forbidden, absent},
		"/unknown":                {unauthorized, unauthorized, forbidden, absent},
	}
	for path, tc := range tests {
		for user, want := range map[string]int{"": tc.anonymous, "stranger": tc.stranger, "guest": tc.guest, "admin": tc.admin} {
			if got, body := server.get(path, user); got != want {
				t.Errorf("%s as %q: %d, want %d:\n%s", path, user, got, want, body)
			}
		}
	}
}

func TestSettingVerbosityNeedsAuthorization(t *testing.T) {
	server := start(t, all(t))
	for user, want := range map[string]int{"": http.StatusUnauthorized, "guest": http.StatusForbidden, "admin": http.StatusOK} {
		// 0 is the current value.
		code, body, err := server.do(http.MethodPut, "/debug/flags/v", user, "0")
		if err != nil || code != want {
			t.Errorf("PUT as %q: %d, want %d: %s, %v", user, code, want, body, err)
		}
	}
}

func TestMaxVerbosity(t *testing.T) {
	t.Cleanup(func() {
		if _, err := logs.GlogSetter("0"); err != nil {
			t.Error(err)
		}
	})
	server := start(t, all(t))
	for value, want := range map[string]struct {
		code   int
		answer string
		level  klog.Level // the highest that is logged
	}{
		"3":       {http.StatusOK, "successfully set klog.logging.verbosity to 3\n", 3},
		"7":       {http.StatusOK, "successfully set klog.logging.verbosity to 7\n", 7},
		"8":       {http.StatusOK, "successfully set klog.logging.verbosity to 7 instead of 8: above 7 the log would contain objects and tokens\n", 7},
		"1000000": {http.StatusOK, "successfully set klog.logging.verbosity to 7 instead of 1000000: above 7 the log would contain objects and tokens\n", 7},
		"much":    {http.StatusBadRequest, "strconv.ParseUint: parsing \"much\": invalid syntax\n", 0},
	} {
		t.Run(value, func(t *testing.T) {
			if _, err := logs.GlogSetter("0"); err != nil {
				t.Fatal(err)
			}
			code, answer, err := server.do(http.MethodPut, "/debug/flags/v", "admin", value)
			if err != nil || code != want.code || answer != want.answer {
				t.Errorf("PUT: %d %q, %v, want %d %q", code, answer, err, want.code, want.answer)
			}
			if !klog.V(want.level).Enabled() || klog.V(want.level+1).Enabled() {
				t.Errorf("V(%d) enabled: %v, V(%d): %v, want only the first", want.level, klog.V(want.level).Enabled(), want.level+1, klog.V(want.level+1).Enabled())
			}
		})
	}
}

func TestDisabledEndpoints(t *testing.T) {
	config := newConfig(t)
	config.Debugging = componentbaseconfig.DebuggingConfiguration{EnableProfiling: false}
	server := start(t, config)
	for _, path := range []string{"/debug/pprof/", "/debug/flags/v", "/statusz", "/flagz"} {
		if code, _ := server.get(path, "admin"); code != http.StatusNotFound {
			t.Errorf("%s: %d, want %d", path, code, http.StatusNotFound)
		}
	}
}

func TestLibraryMetrics(t *testing.T) {
	server := start(t, all(t))
	_, body := server.get("/metrics", "admin")
	for _, metric := range []string{"go_goroutines ", "process_start_time_seconds ", "kubernetes_build_info{", "registered_metrics_total"} {
		if !strings.Contains(body, "\n"+metric) {
			t.Errorf("/metrics lacks %s", metric)
		}
	}
	server.get("/healthz", "")
	if _, body := server.get("/metrics/slis", "admin"); !strings.Contains(body, `kubernetes_healthcheck{name="foo-controller",type="healthz"} 1`) {
		t.Errorf("/metrics/slis lacks the check:\n%s", body)
	}
}

func TestNoListener(t *testing.T) {
	wait, err := Start(t.Context(), Config{Name: "test-manager"})
	if err != nil {
		t.Fatal(err)
	}
	wait() // returns although the context has not ended
}

func TestStartError(t *testing.T) {
	config := newConfig(t)
	config.SecureServing = &apiserver.SecureServingInfo{}
	if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "listener") {
		t.Errorf("Start without a listener: error %v, want one about the listener", err)
	}
}

func TestWait(t *testing.T) {
	config := newConfig(t)
	server := start(t, config)
	if code, _ := server.get("/healthz", ""); code != http.StatusOK {
		t.Fatalf("/healthz: %d", code)
	}
	server.stop()
	if code, _, err := server.do(http.MethodGet, "/healthz", "", ""); err == nil {
		t.Errorf("/healthz after the end: %d, want a failed connection", code)
	}
	// The port is free again.
	listener, err := net.Listen("tcp", config.SecureServing.Listener.Addr().String())
	if err != nil {
		t.Fatalf("listening on the same port: %v", err)
	}
	listener.Close()
}

func TestWaitForRequestInProgress(t *testing.T) {
	config := newConfig(t)
	address := config.SecureServing.Listener.Addr().String()
	begun, ended := make(chan struct{}), make(chan struct{})
	var answered atomic.Bool
	config.Livez = []healthz.HealthChecker{healthz.NamedCheck("slow", func(*http.Request) error {
		close(begun)
		<-ended
		answered.Store(true)
		return nil
	})}
	ctx, cancel := context.WithCancel(t.Context())
	wait, err := Start(ctx, config)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	server := &running{t: t, url: "https://" + address}
	answer := make(chan int, 1)
	go func() {
		code, _, _ := server.do(http.MethodGet, "/livez", "", "")
		answer <- code
	}()
	<-begun
	cancel()
	go func() {
		defer close(ended)
		// Once the listener is closed, the server waits only for requests in progress.
		for {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			connection.Close()
		}
	}()
	wait()
	if !answered.Load() {
		t.Error("wait returned while a request was in progress")
	}
	if code := <-answer; code != http.StatusOK {
		t.Errorf("the request that was in progress: %d, want %d", code, http.StatusOK)
	}
}
