// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"

	componentbaseconfig "k8s.io/component-base/config"

	internallogs "samplecontroller.io/controller-manager/internal/logs"
)

// maxResponse is larger than any response, including profiles.
const maxResponse = 16 << 20

// FuzzHandler sends raw requests as a caller that is authorized for everything.
func FuzzHandler(f *testing.F) {
	for _, line := range []string{
		"GET /healthz?verbose&exclude=foo-controller", "GET /healthz/foo-controller", "HEAD /livez", "GET /readyz?verbose", "GET /readyz/../metrics", "POST /healthz",
		"GET /metrics", "GET /metrics/slis", "DELETE /metrics/slis", "GET /statusz", "GET /flagz", "GET /page", "GET /page/a/%2e%2e/b?limit=-1", "OPTIONS *",
		"GET /debug/pprof/", "GET /debug/pprof/goroutine?debug=2", "GET /debug/pprof/heap?gc=1", "GET /debug/pprof/profile?seconds=1e9", "GET /debug/pprof/trace?seconds=0.001",
		"GET /debug/pprof/symbol?0x1+0x2", "GET /debug/pprof/cmdline", "GET /debug/flags/", "GET //debug//flags/v", "GET http://h/healthz", "CONNECT h:1",
	} {
		f.Add([]byte(line + " HTTP/1.1\r\nHost: h\r\n\r\n"))
	}
	for _, body := range []string{"0", "7", "8", "-1", "99999999999999999999", "\x00", strings.Repeat("9", 2*maxBody)} {
		f.Add(fmt.Appendf(nil, "PUT /debug/flags/v HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	f.Add([]byte("PUT /debug/flags/v HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n0"))
	f.Add([]byte("GET /statusz HTTP/1.1\r\nHost: h\r\nAccept: application/json;g=config.k8s.io;v=v1beta1;as=Statusz, */*;q=x\r\nRange: bytes=-1\r\n\r\n"))

	panicked := false
	runtime.PanicHandlers = append(runtime.PanicHandlers, func(context.Context, any) { panicked = true })
	handler := Handler(permissive())
	f.Fuzz(func(t *testing.T, data []byte) {
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return // the server answers 400 before any handler
		}
		// A request for a profile takes as long as it asks for, so cancel it early.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				t.Errorf("panic: %v", p)
			}
			if _, err := logs.GlogSetter("0"); err != nil {
				t.Error(err)
			}
		}()
		panicked = false
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request.WithContext(ctx))
		if panicked {
			t.Errorf("%s %s: panic, status %d", request.Method, request.URL, response.Code)
		}
		if size := response.Body.Len(); size > maxResponse {
			t.Errorf("%s %s: response of %d bytes", request.Method, request.URL, size)
		}
		if verbose := klog.V(internallogs.MaxVerbosity + 1); verbose.Enabled() {
			t.Errorf("%s %s: log verbosity is above %d", request.Method, request.URL, internallogs.MaxVerbosity)
		}
	})
}

// permissive returns a configuration with all endpoints and without a listener, in which every
// caller is authorized.
func permissive() Config {
	return Config{
		Name: "test-manager",
		Authentication: &apiserver.AuthenticationInfo{
			Authenticator: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				return &authenticator.Response{User: &user.DefaultInfo{Name: "admin"}}, true, nil
			}),
		},
		Authorization: &apiserver.AuthorizationInfo{Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()},
		Debugging:     componentbaseconfig.DebuggingConfiguration{EnableProfiling: true},
		Flags:         flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{}},
		Version:       compatibility.NewEffectiveVersionFromString("1.37", "", ""),
		Healthz:       []healthz.HealthChecker{good("foo-controller")},
		Readyz:        []healthz.HealthChecker{bad("informer-sync", "not read yet")},
		Notes:         func() []string { return []string{"leader: nobody"} },
		Pages: map[string]http.Handler{"/page": http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			fmt.Fprintln(w, "page")
		})},
	}
}

func TestLargeBodyIsRejected(t *testing.T) {
	server := start(t, all(t))
	code, answer, err := server.do(http.MethodPut, verbosityPath, "admin", strings.Repeat("0", maxBody+1))
	if err != nil || code != http.StatusBadRequest || !strings.Contains(answer, "too large") {
		t.Errorf("PUT of %d bytes: %d %q, %v, want 400 and a body that says too large", maxBody+1, code, answer, err)
	}
}
