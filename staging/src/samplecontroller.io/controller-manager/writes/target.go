// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// permission is what a write takes, in the words of RBAC.
type permission struct {
	verb      string
	resource  schema.GroupResource // with its subresource: foos/status
	namespace string
}

// what says it wherever it is.
func (p permission) what() string { return p.verb + " " + p.resource.String() }

// target is what a request writes.
type target struct {
	permission
	name string // empty where something is created, or a collection deleted
}

// targetOf returns what a request writes, and false if it writes no resource. The path
// may begin with that of a proxy.
func targetOf(request *http.Request) (target, bool) {
	var t target
	switch request.Method {
	case http.MethodPost:
		t.verb = "create"
	case http.MethodPut:
		t.verb = "update"
	case http.MethodPatch:
		t.verb = "patch"
	case http.MethodDelete:
		t.verb = "delete"
	default:
		return target{}, false
	}
	const core, groups = "/api/v1/", "/apis/"
	path := request.URL.Path
	i, j := strings.Index(path, core), strings.Index(path, groups)
	switch {
	case i >= 0 && (j < 0 || i < j):
		path = path[i+len(core):]
	case j >= 0:
		t.resource.Group, path, _ = strings.Cut(path[j+len(groups):], "/")
		_, path, _ = strings.Cut(path, "/") // the version
	default:
		return target{}, false
	}

	resource, path, _ := strings.Cut(strings.TrimSuffix(path, "/"), "/")
	name, path, _ := strings.Cut(path, "/")
	if resource == "namespaces" {
		t.namespace = name
		// What follows is in the namespace, unless it is of the namespace.
		if path != "" && path != "status" && path != "finalize" {
			resource, path, _ = strings.Cut(path, "/")
			name, path, _ = strings.Cut(path, "/")
		}
	}
	if resource == "" {
		return target{}, false
	}
	if name == "" && t.verb == "delete" {
		t.verb = "deletecollection"
	}
	if subresource, _, _ := strings.Cut(path, "/"); subresource != "" {
		resource += "/" + subresource
	}
	t.resource.Resource, t.name = resource, name
	return t, true
}
