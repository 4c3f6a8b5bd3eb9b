// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	restclient "k8s.io/client-go/rest"
)

func TestTable(t *testing.T) {
	s := newFakeServer()
	s.denied["patch foos/status.example.com in all namespaces"] = true
	report := s.run(t, program())
	var table strings.Builder
	if err := report.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	const want = `CHECK                          RESULT   DETAILS
API server                     OK       URL, as somebody
permissions: controllers       FAIL     may not patch foos/status.example.com in all namespaces, needed by foo-controller
permissions: leader election   OK       all 1 granted
APIs                           OK       all 2 served
Lease                          OK       a leader writes for 11s
Lease                          OK       ns/foo-manager is free

Failed: 1. Warnings: 0. Skipped: 0.
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestUndeclaredPermissionsAreAWarning(t *testing.T) {
	p := program()
	p.Undeclared = []string{"a-controller"}
	want := Check{"permissions: a-controller", WARN, "a-controller declares no Rules: its permissions cannot be checked"}
	if report := newFakeServer().run(t, p); !slices.Contains(report.Checks, want) {
		t.Errorf("checks %v, want %v", report.Checks, want)
	}
}

func TestJSON(t *testing.T) {
	report := Report{Checks: []Check{{"APIs", OK, "all 2 served"}}}
	var got strings.Builder
	if err := report.WriteJSON(&got); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "checks": [
    {
      "check": "APIs",
      "result": "OK",
      "details": "all 2 served"
    }
  ]
}
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// TestProblems checks the row for each problem.
func TestProblems(t *testing.T) {
	const (
		lease      = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
		whoAmI     = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
		mayI       = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
		listFoos   = "list foos.example.com in all namespaces"
		theLease   = "GET " + lease + "/foo-manager"
		makeLease  = "POST " + lease
		discovered = "GET /apis/example.com/v1"
	)
	tests := map[string]struct {
		spoil func(*fakeServer)
		want  Check
		fails bool
	}{
		"credentials": {
			func(s *fakeServer) { s.codes[whoAmI] = 401 },
			Check{"API server", FAIL, "does not accept the credentials of this process"}, true,
		},
		"what to do about credentials": {
			func(s *fakeServer) { s.codes[whoAmI] = 401 },
			Check{"API server", FAIL, "; renew the credentials, or check --kubeconfig"}, true,
		},
		"API server": {
			func(s *fakeServer) { s.codes[whoAmI] = 500 },
			Check{"API server", FAIL, "cannot be used: code"}, true,
		},
		"what to do about the API server": {
			func(s *fakeServer) { s.codes[whoAmI] = 500 },
			Check{"API server", FAIL, "; check that the API server runs, and that --kubeconfig and --master have its address"}, true,
		},
		"permission": {
			func(s *fakeServer) { s.denied[listFoos] = true },
			Check{"permissions: controllers", FAIL, "may not " + listFoos + ", needed by foo-controller"}, true,
		},
		"review": {
			func(s *fakeServer) { s.codes[mayI] = 500 },
			Check{"permissions: controllers", FAIL, "whether it may " + listFoos + " is unknown"}, true,
		},
		"CRD": {
			func(s *fakeServer) { delete(s.resources, "example.com/v1") },
			Check{"APIs", FAIL, "no controller would run: none of the custom resources of foo-controller is served"}, true,
		},
		"version": {
			func(s *fakeServer) { s.resources = map[string][]string{"v1": {"pods"}, "example.com/v2": {"foos"}} },
			Check{"APIs", WARN, "foos.example.com v1 is not served, only v2 is; foo-controller would wait for it"}, true,
		},
		"status": {
			func(s *fakeServer) { s.resources["example.com/v1"] = []string{"foos"} },
			Check{"APIs", WARN, "foos.example.com v1 has no subresource status"}, false,
		},
		"discovery": {
			func(s *fakeServer) { s.codes[discovered] = 503 },
			Check{"APIs", WARN, "foos.example.com v1, read by foo-controller, cannot be discovered: "}, true,
		},
		"namespace": {
			func(s *fakeServer) { s.codes[theLease], s.codes[makeLease] = 404, 404 },
			Check{"Lease", FAIL, "ns/foo-manager cannot be created: code"}, true,
		},
		"what to do about the namespace": {
			func(s *fakeServer) { s.codes[theLease], s.codes[makeLease] = 404, 404 },
			Check{"Lease", FAIL, "; create the namespace, or set another --leader-elect-resource-namespace"}, true,
		},
		"admission": {
			func(s *fakeServer) { s.codes[theLease], s.codes[makeLease] = 404, 403 },
			Check{"Lease", FAIL, "ns/foo-manager cannot be created: code"}, true,
		},
		"nothing": {
			func(*fakeServer) {},
			Check{"Lease", OK, "ns/foo-manager is free"}, false,
		},
		"Lease is missing": {
			func(s *fakeServer) { s.codes[theLease] = 404 },
			Check{"Lease", OK, "ns/foo-manager can be created"}, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer()
			tc.spoil(s)
			report := s.run(t, program())
			if !contains(report, tc.want) {
				t.Errorf("got %v, want %v", report.Checks, tc.want)
			}
			if failed := report.Count(FAIL) > 0; failed != tc.fails {
				t.Errorf("failed: %t, want %t: %v", failed, tc.fails, report.Checks)
			}
		})
	}
}

func contains(report Report, want Check) bool {
	for _, c := range report.Checks {
		if c.Check == want.Check && c.Result == want.Result && strings.Contains(c.Details, want.Details) {
			return true
		}
	}
	return false
}

// TestControllerWithOneOfItsResourcesRuns checks that a missing CRD is no failure while another
// one of the controller is served.
func TestControllerWithOneOfItsResourcesRuns(t *testing.T) {
	s, p := newFakeServer(), program()
	bars := p.APIs[1]
	bars.Resource.Group, bars.Subresources = "other.example.com", nil
	p.APIs = append(p.APIs, bars)
	if report := s.run(t, p); report.Count(FAIL) != 0 || report.Count(WARN) != 1 {
		t.Errorf("got %v, want only a warning", report.Checks)
	}
}

func TestUnreachableAPIServerIsTheOnlyCheck(t *testing.T) {
	p := program()
	p.Config = &restclient.Config{Host: "http://127.0.0.1:1"}
	report, err := Run(t.Context(), p)
	if err != nil || len(report.Checks) != 1 || !contains(report, Check{"API server", FAIL, "connection refused"}) {
		t.Errorf("got %v and %v", report.Checks, err)
	}
}

func TestUntrustedAPIServer(t *testing.T) {
	server := httptest.NewUnstartedServer(newFakeServer())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake
	server.StartTLS()
	defer server.Close()
	p := program()
	p.Config = &restclient.Config{Host: server.URL} // without its authority
	report, err := Run(t.Context(), p)
	if err != nil || !contains(report, Check{"API server", FAIL, "certificate signed by unknown authority"}) {
		t.Errorf("got %v and %v", report.Checks, err)
	}
	if advice := "check that --kubeconfig has the address and the certificate authority of this API server"; !contains(report, Check{"API server", FAIL, advice}) {
		t.Errorf("got %v, want %q", report.Checks, advice)
	}
}

// TestWrongLeaseNamespace: outside of a cluster, the default is rarely the right one.
func TestWrongLeaseNamespace(t *testing.T) {
	s, p := newFakeServer(), program()
	const leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
	create := Permission{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: "ns"}
	s.denied[create.String()] = true
	s.codes["GET "+leases+"/foo-manager"], s.codes["POST "+leases] = 403, 403
	p.Lease.Elsewhere = "set the flag"
	p.Permissions = []Group{{Name: "leader election", Permissions: []Permission{create}}}
	report := s.run(t, p)
	want := Check{"Lease", SKIP, "cannot be tried without the permissions for it; set the flag"}
	if !contains(report, want) || report.Count(FAIL) == 0 {
		t.Errorf("got %v, want %v and a failure", report.Checks, want)
	}
}

// TestEndOfContextStopsChecks ends the context during each request in turn.
func TestEndOfContextStopsChecks(t *testing.T) {
	for _, path := range []string{"/selfsubjectreviews", "/selfsubjectaccessreviews", "/apis/example.com/v1", "/leases/foo-manager"} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := newFakeServer()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, path) {
					_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
					cancel()
					<-r.Context().Done() // no answer
					return
				}
				s.ServeHTTP(w, r)
			}))
			defer server.Close()
			p := program()
			p.Config = &restclient.Config{Host: server.URL, ContentConfig: restclient.ContentConfig{ContentType: "application/json"}}
			if _, err := Run(ctx, p); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that the context ended", err)
			}
		})
	}
}

func TestExpandedRules(t *testing.T) {
	var got []string
	for _, rule := range []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "deployments/scale"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get"}},
	} {
		for _, permission := range Expand(rule, "ns") {
			got = append(got, permission.String())
		}
	}
	want := []string{
		`get pods in namespace "ns"`, `get deployments/scale in namespace "ns"`, `get pods.apps in namespace "ns"`, `get deployments/scale.apps in namespace "ns"`,
		`get secrets "a" in namespace "ns"`, `get secrets "b" in namespace "ns"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestServedNamespace(t *testing.T) {
	const (
		path   = "/api/v1/namespaces/team"
		get    = `get namespaces "team" in all namespaces`
		create = "POST " + path + "/events"
	)
	tests := map[string]struct {
		spoil func(*fakeServer)
		want  Check
	}{
		"exists":         {func(*fakeServer) {}, Check{"namespace", OK, "team exists"}},
		"does not exist": {func(s *fakeServer) { s.codes["GET "+path] = 404 }, Check{"namespace", WARN, "team does not exist, so nothing is served"}},
		"cannot be read": {func(s *fakeServer) { s.denied[get], s.codes[create] = true, 403 }, Check{"namespace", SKIP, "whether team exists cannot be checked with these credentials"}},
		"Events only":    {func(s *fakeServer) { s.denied[get] = true }, Check{"namespace", OK, "team exists"}},
		"no Events":      {func(s *fakeServer) { s.denied[get], s.codes[create] = true, 404 }, Check{"namespace", WARN, "team does not exist, so nothing is served"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, p := newFakeServer(), program()
			p.Namespace = "team"
			tc.spoil(s)
			if report := s.run(t, p); !contains(report, tc.want) {
				t.Errorf("got %v, want %v", report.Checks, tc.want)
			}
		})
	}
}
