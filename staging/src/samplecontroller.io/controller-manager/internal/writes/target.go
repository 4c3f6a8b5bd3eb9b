// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what a request writes.
type target struct {
	Write
	namespace string // empty for a cluster-scoped resource
	name      string // empty for create, deletecollection and a list of several objects
}

// verbs maps the methods of requests to their verbs. Without a name, get and delete have others.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// targetOf returns the target of a request, and false if it has none. The path may have a prefix,
// such as that of a proxy.
func targetOf(request *http.Request) (target, bool) {
	var t target
	if t.Verb = verbs[request.Method]; t.Verb == "" {
		return target{}, false
	}
	const core, groups = "/api/v1/", "/apis/"
	group, path := "", request.URL.Path
	i, j := strings.Index(path, core), strings.Index(path, groups)
	switch {
	case i >= 0 && (j < 0 || i < j):
		path = path[i+len(core):]
	case j >= 0:
		group, path, _ = strings.Cut(path[j+len(groups):], "/")
		_, path, _ = strings.Cut(path, "/") // the version
	default:
		return target{}, false
	}

	resource, path, _ := strings.Cut(strings.TrimSuffix(path, "/"), "/")
	name, path, _ := strings.Cut(path, "/")
	if resource == "namespaces" {
		t.namespace = name
		// The rest of the path is in the namespace, unless it is a subresource of the namespace.
		if path != "" && path != "status" && path != "finalize" {
			resource, path, _ = strings.Cut(path, "/")
			name, path, _ = strings.Cut(path, "/")
		}
	}
	if resource == "" {
		return target{}, false
	}
	switch {
	case name == "" && t.Verb == "delete":
		t.Verb = "deletecollection"
	case name == "" && t.Verb == "get":
		t.Verb, name = "list", listed(request)
	}
	if subresource, _, _ := strings.Cut(path, "/"); subresource != "" {
		resource += "/" + subresource
	}
	t.Resource, t.name = schema.GroupResource{Group: group, Resource: resource}.String(), name
	return t, true
}

// listed returns the name of the only object that a list selects, empty if there may be others. The
// authorizer takes it for the name in the path.
func listed(request *http.Request) string {
	selector, err := fields.ParseSelector(request.URL.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch(metav1.ObjectNameField)
	return name
}

// Target is what a request writes.
type Target struct {
	Write
	// Namespace is empty for a cluster-scoped resource. Name is empty for create and deletecollection.
	Namespace, Name string
}

// Subresource returns the subresource, empty if there is none.
func (t Target) Subresource() string {
	_, subresource, _ := strings.Cut(schema.ParseGroupResource(t.Resource).Resource, "/")
	return subresource
}

// TargetOf returns what a request writes. It returns false if it writes no resource.
func TargetOf(request *http.Request) (Target, bool) {
	t, ok := targetOf(request)
	return Target{t.Write, t.namespace, t.name}, ok && !t.isRead()
}

// isRead reports whether the request does not write.
func (t target) isRead() bool { return t.Verb == "get" || t.Verb == "list" }
