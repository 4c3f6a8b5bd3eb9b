// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

func TestOtherEndpointsNeedAuthorization(t *testing.T) {
	server := framework.StartDaemon(t)
	nobody := framework.TokenWith(t, framework.NewNamespace(t))
	scraper := framework.TokenWith(t, framework.NewNamespace(t), "sample-controller-manager-metrics-reader")
	reader := framework.TokenWith(t, framework.NewNamespace(t), framework.StatusReader)
	admin := server.Admin()
	for path, want := range map[string]string{
		"/metrics":                       "sample_controller_manager_sync_total",
		"/metrics/slis":                  "kubernetes_healthcheck",
		"/statusz":                       "sample-controller-manager statusz",
		"/flagz":                         "leader-elect-lease-duration",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/controllers":             "foo-controller",
	} {
		server.GetPage(path, "", http.StatusUnauthorized)
		server.GetPage(path, "no-token-at-all", http.StatusUnauthorized)
		server.GetPage(path, nobody, http.StatusForbidden)
		server.GetPage(path, admin, http.StatusOK, want)
	}
	server.GetPage("/metrics", scraper, http.StatusOK)
	server.GetPage("/metrics/slis", scraper, http.StatusOK)
	server.GetPage("/flagz", scraper, http.StatusForbidden)
	server.GetPage("/debug/controllers", scraper, http.StatusForbidden)
	server.GetPage("/debug/controllers/foo-controller/default/a", reader, http.StatusOK)
	server.GetPage("/statusz", reader, http.StatusOK)
	server.GetPage("/metrics", reader, http.StatusForbidden)

	for who, want := range map[string]int{"": http.StatusUnauthorized, nobody: http.StatusForbidden,
		scraper: http.StatusForbidden, admin: http.StatusOK} {
		code, body, err := server.DoAs(t.Context(), http.MethodPut, who, "/debug/flags/v", "0")
		if err != nil || code != want {
			t.Errorf("PUT /debug/flags/v answers %d %s %v, want %d", code, body, err, want)
		}
	}
}

// TestEndpointsAreDocumented checks that every path listed by /statusz appears in operate.md.
func TestEndpointsAreDocumented(t *testing.T) {
	manual, err := os.ReadFile("../../../../manifests/docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	server := framework.StartDaemon(t)
	admin := server.Admin()
	_, listed, _ := strings.Cut(server.GetPage("/statusz", admin, http.StatusOK), "\nPaths")
	listed, _, _ = strings.Cut(listed, "\n")
	paths := regexp.MustCompile(`/\w+`).FindAllString(listed, -1)
	if len(paths) < 3 {
		t.Errorf("/statusz lists %q", listed)
	}
	for _, path := range append(paths, "/healthz", "/livez", "/readyz", "/statusz", "/flagz", "/debug/pprof", "/debug/flags/v", "/debug/controllers") {
		if !strings.Contains(string(manual), "`"+path) {
			t.Errorf("manifests/docs/operate.md does not document %s", path)
		}
	}
}
