// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// TestTargetMatchesAPIServer compares with the API server's own parser.
func TestTargetMatchesAPIServer(t *testing.T) {
	for _, path := range []string{
		"/apis/apps/v1/namespaces/x/deployments",
		"/apis/apps/v1/namespaces/x/deployments/web",
		"/apis/apps/v1/namespaces/x/deployments/web/",
		"/apis/apps/v1/namespaces/x/deployments/web/scale",
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos/a/status",
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos",
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos?fieldSelector=metadata.name%3Da",
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos?fieldSelector=metadata.name!%3Da,spec.b%3Dc",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/apps/v1/namespaces/apis/deployments/apis/status",
		"/api/v1/namespaces/x/pods",
		"/api/v1/namespaces/x/pods/p",
		"/api/v1/namespaces/x/pods/p/eviction",
		"/api/v1/namespaces/x/pods/p/proxy/a/b",
		"/api/v1/namespaces/api/pods/v1",
		"/api/v1/namespaces/status/pods",
		"/api/v1/namespaces",
		"/api/v1/namespaces/x",
		"/api/v1/namespaces/x/status",
		"/api/v1/namespaces/x/finalize",
		"/api/v1/nodes/n/status",
	} {
		for _, method := range methods {
			request, err := http.NewRequest(method, "https://api.test"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			info, err := requestInfos.NewRequestInfo(request)
			if err != nil || !info.IsResourceRequest {
				t.Fatalf("%s: %+v, %v", path, info, err)
			}
			got, ok := targetOf(request)
			resource := schema.GroupResource{Group: info.APIGroup,
				Resource: strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")}
			want := target{Write{info.Verb, resource.String()}, info.Namespace, info.Name}
			if !ok || got != want {
				t.Errorf("%s %s is %+v, want %+v", method, path, got, want)
			}
			request.URL.Path = "/clusters/c-1" + request.URL.Path
			if behind, ok := targetOf(request); !ok || behind != want {
				t.Errorf("%s %s behind a proxy is %+v, want %+v", method, path, behind, want)
			}
		}
	}
}

func TestOtherRequestsHaveNoTarget(t *testing.T) {
	for _, request := range []string{
		"HEAD /api/v1/pods", "OPTIONS /api/v1/pods",
		"POST /", "POST /healthz", "POST /apis/", "POST /apis/apps", "POST /apis/apps/v1", "DELETE /api/v1/",
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, "https://api.test"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := targetOf(r); ok {
			t.Errorf("%s has target %+v, want none", request, got)
		}
	}
}

func TestTargetAllocations(t *testing.T) {
	r, err := http.NewRequest(http.MethodPatch, "https://api.test/apis/samplecontroller.k8s.io/v1alpha1/namespaces/x/foos/a/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(100, func() { targetOf(r) }); got > 2 {
		t.Errorf("%v allocations, want at most those for the resource name", got)
	}
}
