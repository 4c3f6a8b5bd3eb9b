// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// ClientFor returns a function that returns the client of a resource in a namespace, where ""
// means all namespaces. T is the type of the objects, a pointer to a struct that is registered
// in scheme. L is the type of their lists, which must be registered too, or runtime.Object. The
// clients implement informers.Source. Those of custom resources decode as [RESTClientFor]
// describes. Those of built-in types use the content type of config. It returns an error if scheme
// lacks a type, or config is invalid; it sends nothing.
func ClientFor[T Object, L runtime.Object](config *rest.Config, scheme *runtime.Scheme,
	resource schema.GroupVersionResource) (func(namespace string) *gentype.ClientWithList[T, L], error) {
	version := resource.GroupVersion()
	kinds, _, err := scheme.ObjectKinds(newOf[T]())
	i := slices.IndexFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.GroupVersion() == version })
	if err != nil || i < 0 {
		return nil, fmt.Errorf("the scheme does not know %v as a type of %v: call AddKnownTypes of the scheme", reflect.TypeFor[T](), version)
	}
	list := version.WithKind(kinds[i].Kind + "List")
	for _, needed := range []schema.GroupVersionKind{list, version.WithKind("ListOptions")} {
		if !scheme.Recognizes(needed) {
			return nil, fmt.Errorf("the scheme does not know %s of %v: call AddKnownTypes of the scheme, and metav1.AddToGroupVersion", needed.Kind, version)
		}
	}
	object, _ := scheme.New(list) // it is registered
	if _, ok := object.(L); !ok {
		return nil, fmt.Errorf("the scheme does not know %v as a type of %v: call AddKnownTypes of the scheme", reflect.TypeFor[L](), version)
	}
	client, err := clientOf[T](config, kinds[i], scheme)
	if err != nil {
		return nil, fmt.Errorf("creating a client for %v: %w", resource, err)
	}
	codec := runtime.NewParameterCodec(scheme)
	newList := func() L {
		object, _ := scheme.New(list)
		return object.(L)
	}
	return func(namespace string) *gentype.ClientWithList[T, L] {
		return gentype.NewClientWithList(resource.Resource, client, codec, namespace, newOf[T], newList)
	}, nil
}

// clientOf returns a client for objects of a kind.
func clientOf[T Object](config *rest.Config, kind schema.GroupVersionKind, scheme *runtime.Scheme) (rest.Interface,
	error) {
	version := kind.GroupVersion()
	if !IsBuiltIn[T](kind) {
		return RESTClientFor(config, version, scheme)
	}
	config = configFor(config, version)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// IsBuiltIn reports whether T is client-go's type of a kind, which is then a kind of Kubernetes
// itself. The API server encodes only those in protobuf, though types of custom resources may have
// the methods for it, too.
func IsBuiltIn[T Object](kind schema.GroupVersionKind) bool {
	known, err := kubescheme.Scheme.New(kind)
	return err == nil && reflect.TypeOf(known) == reflect.TypeFor[T]()
}

// newOf returns a new object of a pointer-to-struct type.
func newOf[T any]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}
