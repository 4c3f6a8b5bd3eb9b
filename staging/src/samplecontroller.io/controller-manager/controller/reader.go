// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Reader reads the objects of a kind from the cache. It returns copies, and leaves out objects that
// cannot be decoded. Make it with [Watch] or [Refers].
type Reader[T Object] struct {
	resource *resource[T]
	prefix   string // of the names of indexes
}

// Watch makes the controller of builder read objects of type T. A change of an object enqueues the
// keys that keys returns for its old and its new state. keys must be a pure function of the object:
// it runs while events are delivered, so it must not call the API or take locks.
func Watch[T, P Object](builder *Builder[P], keys func(T) []cache.ObjectName, opts ...Option) *Reader[T] {
	reader := newReader[T](builder, opts)
	if reader.resource != nil {
		builder.watches = append(builder.watches, func(l *reconcile.Loop) {
			reconcile.Watch(l, reader.resource.informer, keys)
		})
	}
	return reader
}

// Refers makes the controller of builder read the objects of type T that its own objects refer to by
// name, in their own namespace; objects of a [ClusterScoped] type T have none. names returns these
// names. A change of an object of type T enqueues the objects that refer to it. names must be a pure
// function of the object.
func Refers[T, P Object](builder *Builder[P], names func(P) []string, opts ...Option) *Reader[T] {
	reader := newReader[T](builder, opts)
	if reader.resource == nil {
		return reader
	}
	referred, owners := reader.resource, builder.resource
	if owners.cluster && !referred.cluster {
		builder.fail(misuse.Errorf("%s refers from a %s, which has no namespace, to a %s, which has one: use Watch, whose function returns the keys",
			builder.context.name, owners.kind.Kind, referred.kind.Kind))
		return reader
	}
	index := builder.context.name + ": refers to " + referred.name.String()
	owners.informerWith(informers.WithIndex(index, indexOf(func(owner P) []string {
		unique := sets.New(names(owner)...).Delete("")
		keys := make([]string, 0, len(unique))
		for name := range unique {
			keys = append(keys, referred.keyIn(owner.GetNamespace(), name).String())
		}
		return keys
	})))
	builder.watches = append(builder.watches, func(l *reconcile.Loop) {
		reconcile.Watch(l, referred.informer, func(object T) (keys []cache.ObjectName) {
			referring, _ := owners.informer.GetIndexer().ByIndex(index, cache.MetaObjectToName(object).String())
			for _, owner := range referring {
				keys = append(keys, cache.MetaObjectToName(owner.(P)))
			}
			return keys
		})
	})
	return reader
}

func newReader[T, P Object](builder *Builder[P], opts []Option) *Reader[T] {
	reader := &Reader[T]{prefix: builder.context.name + ": "}
	resource, err := newResource[T](builder.context, opts)
	builder.fail(err)
	if len(builder.errs) == 0 {
		reader.resource = resource
	}
	return reader
}

// Get returns a copy of the cached object with that name. namespace is ignored for a [ClusterScoped]
// kind. ok is false if there is none, or if it cannot be decoded.
func (r *Reader[T]) Get(namespace, name string) (object T, ok bool) {
	cached, found, err := r.resource.cached(r.resource.keyIn(namespace, name))
	if err != nil || !found || tolerant.DecodeError(cached) != nil {
		return object, false
	}
	return cached.DeepCopyObject().(T), true
}

// List returns copies of the cached objects of a namespace, in no particular order; of all objects if
// namespace is empty.
func (r *Reader[T]) List(namespace string) []T {
	if namespace == "" {
		return copiesOf[T](r.resource.informer.GetIndexer().List())
	}
	return r.by(cache.NamespaceIndex, namespace)
}

// ByIndex returns copies of the cached objects for which the function of [Index] returns the value, in
// no particular order. It panics if the kind has no index of that name.
func (r *Reader[T]) ByIndex(name, value string) []T { return r.by(r.prefix+name, value) }

func (r *Reader[T]) by(index, value string) []T {
	cached, err := r.resource.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		panic(misuse.Errorf("reading %s by index: %w: give the option Index", r.resource.kind.Kind, err))
	}
	return copiesOf[T](cached)
}

func copiesOf[T Object](cached []any) []T {
	objects := make([]T, 0, len(cached))
	for _, obj := range cached {
		if object := obj.(T); tolerant.DecodeError(object) == nil {
			objects = append(objects, object.DeepCopyObject().(T))
		}
	}
	return objects
}
