// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Serve serves a kind as this resource, instead of the one that was guessed.
func (s *Server) Serve(kind schema.GroupVersionKind, resource schema.GroupVersionResource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.kinds[resource] != kind {
		maps.DeleteFunc(s.kinds, func(_ schema.GroupVersionResource, other schema.GroupVersionKind) bool { return other == kind })
		s.kinds[resource] = kind
	}
}

// kindOf returns the kind of a resource.
func (s *Server) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind, known := s.kinds[resource]
	if !known {
		return kind, statusError(http.StatusNotFound, "the in-memory API server does not know the resource %q of %v: add its kind in Program.Scheme and, "+
			"if its plural is irregular, pass controller.Resource(%q) to For or Owns", resource.Resource, resource.GroupVersion(), resource.Resource)
	}
	return kind, nil
}

// checkScope returns the error for a request whose path has a namespace although the resource has
// none, or the other way round.
func (c call) checkScope() error {
	namespaced, known := scopes()[c.resource]
	if !known || namespaced == (c.Namespace != "") || namespaced && slices.Contains([]string{"list", "watch"}, c.Verb) {
		return nil
	}
	if !namespaced {
		return statusError(http.StatusNotFound, "%v have no namespace, but the request has the namespace %q", c.resource.GroupResource(), c.Namespace)
	}
	code := http.StatusNotFound
	if c.Verb == "create" {
		code = http.StatusMethodNotAllowed
	}
	return statusError(code, "%v have a namespace, but the request has none", c.resource.GroupResource())
}

// scopes maps each resource of Kubernetes to whether its objects have a namespace. The methods of
// client-go show it, such as CoreV1().Pods(namespace) and CoreV1().Nodes().
var scopes = sync.OnceValue(func() map[schema.GroupVersionResource]bool {
	namespaced := map[schema.GroupVersionResource]bool{}
	clients := reflect.ValueOf(kubernetes.NewForConfigOrDie(&rest.Config{}))
	for i := range clients.NumMethod() {
		method := clients.Method(i)
		if clients.Type().Method(i).Name == "Discovery" || method.Type().NumIn() > 0 || method.Type().NumOut() != 1 {
			continue
		}
		client := method.Call(nil)[0].Elem()
		group, ok := reflect.TypeAssert[interface{ RESTClient() rest.Interface }](client)
		if !ok {
			continue
		}
		version := group.RESTClient().APIVersion()
		for j := range client.NumMethod() {
			getter := client.Type().Method(j)
			if getter.Name != "RESTClient" {
				namespaced[version.WithResource(strings.ToLower(getter.Name))] = client.Method(j).Type().NumIn() == 1
			}
		}
	}
	return namespaced
})

// checkSupported returns an error with code 501 for a request that a real API server would serve.
func (c call) checkSupported() error {
	switch mediaType := c.Header.Get("Content-Type"); {
	case c.Subresource != "" && c.Subresource != "status":
		return c.unsupported("the subresource " + c.Subresource)
	case strings.HasPrefix(mediaType, "application/apply-patch"):
		return c.unsupported("server-side apply")
	case c.body != nil && strings.Contains(mediaType, "protobuf"):
		return c.unsupported("protobuf")
	case !slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete"}, c.Verb):
		return c.unsupported(c.Verb)
	case strings.Contains(c.Header.Get("Accept"), "as=Table"):
		return c.unsupported("tables")
	}
	return nil
}

func (c call) unsupported(what string) error {
	return statusError(http.StatusNotImplemented, "the in-memory API server does not support %s, as in %s %s: test it on a real API server, with managertest.RunOn",
		what, c.Method, c.URL.Path)
}

// statusError returns an error that is the response of the API server.
func statusError(code int, format string, args ...any) error {
	err := apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, true)
	err.ErrStatus.Message = fmt.Sprintf(format, args...)
	return err
}
