// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// ClientFor returns a function that returns the client of a resource in a namespace, where ""
// means all namespaces. T is the type of the objects and L that of their lists. Both are
// pointers to structs registered in scheme. The clients implement informers.Source.
func ClientFor[T Object, L runtime.Object](config *rest.Config, scheme *runtime.Scheme, resource schema.GroupVersionResource) (func(namespace string) *gentype.ClientWithList[T, L], error) {
	version := resource.GroupVersion()
	for _, known := range []reflect.Type{reflect.TypeFor[T](), reflect.TypeFor[L]()} {
		if !knows(scheme, version, known) {
			return nil, fmt.Errorf("creating a client for %v: the scheme does not know %v as a type of %v: call AddKnownTypes of the scheme", resource, known, version)
		}
	}
	if !scheme.Recognizes(version.WithKind("ListOptions")) {
		return nil, fmt.Errorf("creating a client for %v: the scheme does not know the options of %v: call metav1.AddToGroupVersion", resource, version)
	}
	client, err := RESTClientFor(config, version, scheme)
	if err != nil {
		return nil, fmt.Errorf("creating a client for %v: %w", resource, err)
	}
	codec := runtime.NewParameterCodec(scheme)
	return func(namespace string) *gentype.ClientWithList[T, L] {
		return gentype.NewClientWithList[T, L](resource.Resource, client, codec, namespace, newOf[T], newOf[L])
	}, nil
}

// knows reports whether the type that pointer points to is registered in the version.
func knows(scheme *runtime.Scheme, version schema.GroupVersion, pointer reflect.Type) bool {
	for _, known := range scheme.KnownTypes(version) {
		if pointer == reflect.PointerTo(known) {
			return true
		}
	}
	return false
}

// newOf returns a new object of a pointer-to-struct type.
func newOf[T any]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}
