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

func TestProbesNeedNoAuthenticationAndListChecks(t *testing.T) {
	server := framework.StartDaemon(t)
	for path, checks := range map[string][]string{
		"/healthz": append(framework.Names(), "informer-watch", "leaderElection", "lease", "ping"),
		"/livez":   {"leaderElection", "ping", "stuck-syncs"},
		"/readyz":  {"informer-sync", "leaderElection", "lease", "ping"},
	} {
		body := server.GetPage(path+"?verbose", "", http.StatusOK)
		for _, check := range checks {
			if !strings.Contains(body, "[+]"+check+" ok") {
				t.Errorf("%s?verbose does not report that %s is ok:\n%s", path, check, body)
			}
		}
		if got := strings.Count(body, "[+]"); got != len(checks) {
			t.Errorf("%s?verbose has %d checks, want %v:\n%s", path, got, checks, body)
		}
		server.GetPage(path+"/"+checks[0], "", http.StatusOK)
	}
}

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

func TestMetricsForOperators(t *testing.T) {
	ns := framework.NewNamespace(t)
	server := framework.StartDaemon(t)
	admin := server.Admin()
	framework.Foos.Create(t, ns, "a", 1)
	framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
	body := server.GetPage("/metrics", admin, http.StatusOK)
	for _, series := range []string{
		`sample_controller_manager_sync_total{controller="foo-controller",result="success"} `,
		`sample_controller_manager_sync_total{controller="foo-controller",result="panic"} `,
		`sample_controller_manager_sync_duration_seconds_count{controller="foo-controller"} `,
		`sample_controller_manager_sync_total{controller="icecream-controller",result="success"} `,
		`sample_controller_manager_sync_total{controller="status-aggregator-controller",result="success"} `,
		`workqueue_depth{name="icecream-controller"} `,
		`workqueue_depth{name="status-aggregator-controller-foos"} `,
		`workqueue_depth{name="status-aggregator-controller-icecreams"} `,
		`workqueue_depth{name="foo-controller"} `,
		`workqueue_adds_total{name="foo-controller"} `,
		`workqueue_queue_duration_seconds_count{name="foo-controller"} `,
		`rest_client_requests_total{code="201",`,
		`rest_client_request_duration_seconds_count{`,
		`leader_election_master_status{name="sample-controller-manager"} 1`,
		`sample_controller_manager_leadership_terms_total{end="abandoned"} `,
		`sample_controller_manager_leadership_drain_duration_seconds_count `,
		`sample_controller_manager_leadership_handover_duration_seconds_count `,
		`sample_controller_manager_informer_objects{resource="foos.samplecontroller.k8s.io"} `,
		`sample_controller_manager_informer_objects{resource="pods"} `,
		`sample_controller_manager_objects{condition="Reconciling",reason="Progressing",resource="foos.samplecontroller.k8s.io"} `,
		`sample_controller_manager_objects{condition="Ready",reason="Available",resource="icecreams.controller.nicoleh.io"} `,
		`sample_controller_manager_resource_served{resource="icecreams.controller.nicoleh.io"} `,
		`sample_controller_manager_watch_age_seconds{resource="icecreams.controller.nicoleh.io"} `,
		`process_resident_memory_bytes `,
		`go_goroutines `,
		`kubernetes_build_info{`,
	} {
		if !strings.Contains(body, "\n"+series) {
			t.Errorf("/metrics has no series %s", series)
		}
	}
}
