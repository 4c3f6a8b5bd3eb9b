// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/internal/connection"
)

// fakeServer answers the requests of a preflight. By default all is well.
type fakeServer struct {
	// denied are permissions that are not granted.
	denied map[string]bool
	// codes maps "METHOD path" to a status code other than 200.
	codes map[string]int
	// resources maps a group and version to its resources.
	resources map[string][]string
}

func newFakeServer() *fakeServer {
	return &fakeServer{
		denied: map[string]bool{}, codes: map[string]int{},
		resources: map[string][]string{"v1": {"pods"}, "example.com/v1": {"foos", "foos/status"}},
	}
}

// program returns a program that needs one of each.
func program() Program {
	foos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
	return Program{
		Permissions: []Group{
			{Name: "controllers", Permissions: []Permission{
				{Verb: "list", Group: "example.com", Resource: "foos", For: "foo-controller"},
				{Verb: "patch", Group: "example.com", Resource: "foos/status", For: "foo-controller"},
			}},
			{Name: "leader election", Permissions: []Permission{{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "ns", Name: "foo-manager"}}},
		},
		APIs: []API{
			{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Readers: []string{"foo-controller"}},
			{Resource: foos, Subresources: []string{"status"}, Readers: []string{"foo-controller"}},
		},
		Lease: &Lease{Namespace: "ns", Name: "foo-manager", Timing: "a leader writes for 11s"},
	}
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	code := s.codes[r.Method+" "+r.URL.Path]
	version := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	switch {
	case code != 0:
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
			Code: int32(code), Reason: reasons[code], Message: "code " + r.URL.Path})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		_, _ = w.Write([]byte(`{"status":{"userInfo":{"username":"somebody"}}}`))
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		s.review(w, r)
	case r.URL.Path == "/apis":
		_ = json.NewEncoder(w).Encode(metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "example.com/v1"}, {GroupVersion: "example.com/v2", Version: "v2"}},
		}}})
	case s.resources[version] != nil:
		list := metav1.APIResourceList{GroupVersion: version}
		for _, name := range s.resources[version] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.URL.Path == "/apis/example.com/v1", r.URL.Path == "/api":
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write([]byte(`{"metadata":{"name":"found"}}`))
	}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusNotFound: metav1.StatusReasonNotFound,
}

func (s *fakeServer) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a := review.Spec.ResourceAttributes
	p := Permission{Verb: a.Verb, Group: a.Group, Resource: strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/"),
		Namespace: a.Namespace, Name: a.Name}
	review.Status.Allowed = !s.denied[p.String()]
	_ = json.NewEncoder(w).Encode(review)
}

// run runs the checks of a program against the server.
func (s *fakeServer) run(t *testing.T, p Program) Report {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p.Config = &restclient.Config{Host: server.URL, ContentConfig: restclient.ContentConfig{ContentType: "application/json"}}
	connection.ExplainUnauthorized(p.Config, "")
	report, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range report.Checks {
		report.Checks[i].Details = strings.ReplaceAll(c.Details, server.URL, "URL")
	}
	return report
}
