// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an in-memory API server for tests. It is the transport of clients, so
// tests also cover what clients do to requests.
//
// It answers the requests in testdata like a real API server. It sets the defaults of the kinds that
// are most used; validates, defaults and prunes custom resources as their CRDs say, once those are
// created; rejects unknown fields if a request asks for that; and streams lists. What other controllers of Kubernetes
// delete, [Server.CollectGarbage] deletes. It does not validate objects of built-in kinds, convert between versions,
// for each version of a resource has its own objects. It records which field managers have written an object, but not
// which fields. It supports JSON only, and no server-side apply. It answers requests that it does not support with code
// 501 and a message that says what to do.
package fakeapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Requests parses requests as the API server does.
var Requests = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// Server serves the kinds of a scheme. It is safe for concurrent use. Create it with [New].
type Server struct {
	scheme *runtime.Scheme

	mutex   sync.Mutex
	kinds   map[schema.GroupVersionResource]*kind
	version int64
	oldest  int64 // version at which watches and pages may start
	// objects are never modified.
	objects map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured
	log     []change
	changed chan struct{} // closed at the next change
}

// change is one write. old is nil for a create, new is nil for a delete.
type change struct {
	version  int64
	resource schema.GroupVersionResource
	old, new *unstructured.Unstructured
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// New returns a server that has the Namespaces of a new cluster. It guesses the plural of each kind:
// see [Server.Serve].
func New(scheme *runtime.Scheme) *Server {
	s := &Server{
		scheme: scheme, version: 1000, oldest: 1000,
		kinds:   map[schema.GroupVersionResource]*kind{},
		objects: map[schema.GroupVersionResource]map[types.NamespacedName]*unstructured.Unstructured{},
		changed: make(chan struct{}),
	}
	for gvk, goType := range scheme.AllKnownTypes() {
		_, isObject := reflect.TypeAssert[metav1.Object](reflect.New(goType))
		if isObject && gvk.Version != runtime.APIVersionInternal {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			s.kinds[resource] = newKind(gvk, goType)
		}
	}
	s.kinds[crdKind.GroupVersion().WithResource("customresourcedefinitions")] = &kind{
		GroupVersionKind: crdKind, namespaced: new(bool), status: true, generation: true,
	}
	s.kinds[namespaces] = newKind(corev1.SchemeGroupVersion.WithKind("Namespace"), reflect.TypeFor[corev1.Namespace]())
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		c := s.own(namespaces, types.NamespacedName{})
		c.body = fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name)
		if _, err := s.create(c); err != nil {
			panic(err) // a defect of this package
		}
	}
	return s
}

// Compact forgets old versions, like a real API server after some minutes: a watch from one of them, or
// the next page of an old list, fails with the reason Expired. Open watches continue.
func (s *Server) Compact() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.oldest = s.version
}

// call is one request.
type call struct {
	*request.RequestInfo
	*http.Request
	resource schema.GroupVersionResource
	kind     *kind
	body     []byte
}

// own returns a call of the server itself.
func (s *Server) own(resource schema.GroupVersionResource, key types.NamespacedName) call {
	return call{
		RequestInfo: &request.RequestInfo{Namespace: key.Namespace, Name: key.Name},
		Request:     &http.Request{URL: &url.URL{}},
		resource:    resource,
		kind:        s.kinds[resource],
	}
}

func (c call) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.RequestInfo.Name}
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	c := call{Request: r}
	var err error
	if r.Body != nil {
		c.body, err = io.ReadAll(r.Body)
		r.Body.Close() // required of every RoundTripper
	}
	if err := errors.Join(err, r.Context().Err()); err != nil {
		return nil, err
	}
	if c.RequestInfo, err = Requests.NewRequestInfo(r); err != nil {
		return nil, err
	}
	if c.APIGroup == "" && c.Resource == "namespaces" {
		c.Namespace = "" // a Namespace is in none, although its requests name one
	}
	c.resource = schema.GroupVersionResource{Group: c.APIGroup, Version: c.APIVersion, Resource: c.Resource}
	object, err := s.serve(c)
	if stream, ok := object.(*http.Response); ok {
		return stream, nil
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return Answer(r, int(status.Status().Code), status.Status())
	}
	if err != nil {
		return Answer(r, http.StatusBadRequest, apierrors.NewBadRequest(err.Error()).Status())
	}
	code := http.StatusOK
	if c.Verb == "create" {
		code = http.StatusCreated
	}
	return Answer(r, code, object)
}

// serve returns the object for the response, or the response itself if it is a watch.
func (s *Server) serve(c call) (any, error) {
	var err error
	if !c.IsResourceRequest {
		return nil, c.unsupported("the path " + c.URL.Path)
	}
	if c.kind, err = s.kindOf(c.resource); err != nil {
		return nil, err
	}
	if err := errors.Join(c.checkSupported(), c.checkScope()); err != nil {
		return nil, err
	}
	if c.Verb == "watch" {
		return s.watch(c)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch c.Verb {
	case "list":
		return s.list(c)
	case "create":
		return c.viewed(s.create(c))
	}
	if c.Subresource == "status" && !c.kind.status {
		return nil, apierrors.NewNotFound(c.resource.GroupResource(), c.RequestInfo.Name)
	}
	old := s.objects[c.resource][c.key()]
	if old == nil {
		return nil, apierrors.NewNotFound(c.resource.GroupResource(), c.RequestInfo.Name)
	}
	switch c.Verb {
	case "get":
		return c.view(old), nil
	case "delete":
		return s.delete(c, old)
	default:
		return c.viewed(s.update(c, old))
	}
}

// Answer returns a response with the given code and content.
func Answer(r *http.Request, code int, object any) (*http.Response, error) {
	if status, ok := object.(metav1.Status); ok {
		object = typed(status)
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return response(r, code, io.NopCloser(bytes.NewReader(body))), nil
}

func response(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, StatusCode: code, Status: http.StatusText(code),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: r,
	}
}

func typed(status metav1.Status) metav1.Status {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}
