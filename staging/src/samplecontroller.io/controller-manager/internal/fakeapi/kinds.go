// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// kind is how a kind is served.
type kind struct {
	schema.GroupVersionKind
	builtIn    bool
	namespaced *bool         // nil if unknown
	status     bool          // has a subresource for the status
	generation bool          // counts changes
	schema     *customSchema // nil without CRD
}

// counted are the built-in kinds with a generation.
var counted = sets.New("CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "EndpointSlice", "FlowSchema",
	"HorizontalPodAutoscaler", "Ingress", "IngressClass", "Job", "MutatingWebhookConfiguration", "NetworkPolicy", "Pod",
	"PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet",
	"ReplicationController", "StatefulSet", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration")

// newKind returns how a kind of a scheme is served until there is a CRD.
func newKind(gvk schema.GroupVersionKind, goType reflect.Type) *kind {
	k := &kind{GroupVersionKind: gvk, builtIn: kubescheme.Scheme.Recognizes(gvk)}
	k.generation = !k.builtIn || counted.Has(k.Kind)
	_, k.status = goType.FieldByName("Status")
	return k
}

// Serve serves a kind as this resource, instead of the one that was guessed.
func (s *Server) Serve(gvk schema.GroupVersionKind, resource schema.GroupVersionResource) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if k := s.kinds[resource]; k != nil && k.GroupVersionKind == gvk {
		return
	}
	for _, k := range s.kinds {
		if k.GroupVersionKind == gvk {
			s.serveAs(resource, k)
			return
		}
	}
}

// serveAs serves a kind as one resource.
func (s *Server) serveAs(resource schema.GroupVersionResource, k *kind) {
	maps.DeleteFunc(s.kinds, func(_ schema.GroupVersionResource, other *kind) bool {
		return other.GroupVersionKind == k.GroupVersionKind
	})
	s.kinds[resource] = k
}

// kindOf returns the kind of a resource.
func (s *Server) kindOf(resource schema.GroupVersionResource) (*kind, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if k := s.kinds[resource]; k != nil {
		return k, nil
	}
	return nil, statusError(http.StatusNotFound, "the in-memory API server does not know the resource %q of %v: "+
		"add its kind in Program.Scheme and, if its plural is irregular, pass controller.Resource(%q) to For or Owns",
		resource.Resource, resource.GroupVersion(), resource.Resource)
}

// checkScope returns the error for a request whose path has a namespace although the resource has
// none, or the other way round.
func (c call) checkScope() error {
	namespaced, known := scopes()[c.resource]
	if !c.kind.builtIn {
		namespaced, known = ptr.Deref(c.kind.namespaced, false), c.kind.namespaced != nil
	}
	if !known || namespaced == (c.Namespace != "") || namespaced && slices.Contains([]string{"list", "watch"}, c.Verb) {
		return nil
	}
	if !namespaced {
		return statusError(http.StatusNotFound, "%v have no namespace, but the request has the namespace %q",
			c.resource.GroupResource(), c.Namespace)
	}
	code := http.StatusNotFound
	if c.Verb == "create" && c.kind.builtIn {
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
	query, mediaType := c.URL.Query(), c.Header.Get("Content-Type")
	switch {
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
	case query.Get("resourceVersionMatch") == "Exact":
		return c.unsupported("lists of an exact resourceVersion")
	}
	return nil
}
