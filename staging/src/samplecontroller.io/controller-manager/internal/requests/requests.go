// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests tells requests that write from those that read. The method is not enough: to
// execute a command in a Pod, to attach to it or to forward a port, client-go opens a WebSocket
// with GET.
package requests

import (
	"net/http"
	"regexp"
	"slices"
)

// streams are the subresources of Pods that act on the Pod, whatever the method of the request.
var streams = regexp.MustCompile(`/namespaces/[^/]+/pods/[^/]+/(exec|attach|portforward)$`)

// IsWrite reports whether a request may change something.
func IsWrite(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return request.Header.Get("Upgrade") != "" || streams.MatchString(request.URL.Path)
	}
	return true
}

// IsReadVerb reports whether a verb of an RBAC rule for a resource, or for a subresource such as
// pods/exec, only reads.
func IsReadVerb(resource, verb string) bool {
	return slices.Contains([]string{"get", "list", "watch"}, verb) &&
		!slices.Contains([]string{"pods/exec", "pods/attach", "pods/portforward"}, resource)
}
