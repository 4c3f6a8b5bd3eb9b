// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// everything is a rule that allows all paths.
var everything = rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}

// names returns the names of our controllers and of all others, sorted.
func names() []string {
	all := sets.New("foo-controller", "icecream-controller", "status-aggregator-controller")
	for _, d := range app.Program().Controllers {
		all.Insert(d.Name)
	}
	return sets.List(all)
}

func TestProbesNeedNoAuthenticationAndListChecks(t *testing.T) {
	server := startDaemon(t)
	for path, checks := range map[string][]string{
		"/healthz": append(names(), "informer-watch", "leaderElection", "lease", "ping"),
		"/livez":   {"leaderElection", "ping", "stuck-syncs"},
		"/readyz":  {"informer-sync", "leaderElection", "lease", "ping"},
	} {
		body := get(t, server, path+"?verbose", "", http.StatusOK)
		for _, check := range checks {
			if !strings.Contains(body, "[+]"+check+" ok") {
				t.Errorf("%s?verbose does not report that %s is ok:\n%s", path, check, body)
			}
		}
		if got := strings.Count(body, "[+]"); got != len(checks) {
			t.Errorf("%s?verbose has %d checks, want %v:\n%s", path, got, checks, body)
		}
		get(t, server, path+"/"+checks[0], "", http.StatusOK)
	}
}

func TestOtherEndpointsNeedAuthorization(t *testing.T) {
	server := startDaemon(t)
	nobody := token(t, newNamespace(t))
	scraper := token(t, newNamespace(t), "sample-controller-manager-metrics-reader")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	for path, want := range map[string]string{
		"/metrics":                       "sample_controller_manager_sync_total",
		"/metrics/slis":                  "kubernetes_healthcheck",
		"/configz":                       `"SampleControllerManagerConfiguration"`,
		"/statusz":                       "sample-controller-manager statusz",
		"/flagz":                         "leader-elect-lease-duration",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		get(t, server, path, "", http.StatusUnauthorized)
		get(t, server, path, "no-token-at-all", http.StatusUnauthorized)
		get(t, server, path, nobody, http.StatusForbidden)
		if body := get(t, server, path, admin, http.StatusOK); !strings.Contains(body, want) {
			t.Errorf("%s does not have %q:\n%.2000s", path, want, body)
		}
	}
	get(t, server, "/metrics", scraper, http.StatusOK)
	get(t, server, "/metrics/slis", scraper, http.StatusOK)
	get(t, server, "/configz", scraper, http.StatusForbidden)

	for who, want := range map[string]int{"": http.StatusUnauthorized, nobody: http.StatusForbidden, scraper: http.StatusForbidden, admin: http.StatusOK} {
		code, body, err := server.Put(t.Context(), "/debug/flags/v", who, "0")
		if err != nil || code != want {
			t.Errorf("PUT /debug/flags/v answers %d %s %v, want %d", code, body, err, want)
		}
	}
}

// TestTheManualTellsOfEachEndpoint compares the manual with what the daemon says of itself.
func TestTheManualTellsOfEachEndpoint(t *testing.T) {
	manual, err := os.ReadFile("../../../manifests/docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	server := startDaemon(t)
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	_, listed, _ := strings.Cut(get(t, server, "/statusz", admin, http.StatusOK), "\nPaths")
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
	ns := newNamespace(t)
	server := startDaemon(t)
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	foos.Create(t, ns, "a", 1)
	foos.waitCondition(t, ns, "a", "Reconciling", "Progressing")
	body := get(t, server, "/metrics", admin, http.StatusOK)
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

func TestConfigzServesConfiguration(t *testing.T) {
	server := startDaemon(t, "--concurrent-foo-syncs=7", "--status-aggregation-interval=3s", "--write-timeout=2s")
	admin := token(t, newNamespace(t), clusterRole(t, everything))
	var pages map[string]struct {
		Generic struct {
			Controllers    []string
			LeaderElection struct{ LeaseDuration string }
		}
		ControllerFlags map[string]string
		WriteTimeout    string
	}
	if err := json.Unmarshal([]byte(get(t, server, "/configz", admin, http.StatusOK)), &pages); err != nil {
		t.Fatal(err)
	}
	page := pages["samplecontrollermanager.config.samplecontroller.io"]
	for _, name := range names() {
		if controllers[name] == nil { // not one of ours
			app.Program().Options().Flags().FlagSet(name).VisitAll(func(f *pflag.Flag) { delete(page.ControllerFlags, f.Name) })
		}
	}
	if got, want := fmt.Sprint(page), fmt.Sprintf("{{%s {1m0s}} map[concurrent-foo-syncs:7 concurrent-icecream-syncs:10 concurrent-status-aggregator-syncs:10 status-aggregation-interval:3s] 2s}", names()); got != want {
		t.Errorf("configuration = %s, want %s", got, want)
	}
}

// get requests a path until the response has the wanted code, and returns the body. A new
// role binding takes a moment to become effective.
func get(t *testing.T, server *apptesting.Server, path, token string, want int) string {
	t.Helper()
	var body string
	clustertest.WaitUntil(t, fmt.Sprintf("%s answers %d", path, want), func(ctx context.Context) error {
		code, got, err := server.Get(ctx, path, token)
		body = got
		if err == nil && code != want {
			err = fmt.Errorf("code %d: %.200s", code, got)
		}
		return err
	})
	return body
}

// token returns a token of a new ServiceAccount that the ClusterRoles are bound to.
func token(t *testing.T, ns string, roles ...string) string {
	t.Helper()
	account, err := shared.Kube().CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "user"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: account.Name}},
		}
		if _, err := shared.Kube().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	request, err := shared.Kube().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// clusterRole creates a ClusterRole with one rule and returns its name.
func clusterRole(t *testing.T, rule rbacv1.PolicyRule) string {
	t.Helper()
	role, err := shared.Kube().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Rules:      []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return role.Name
}
