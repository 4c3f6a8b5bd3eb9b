// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Reader reads the objects of a kind from the cache. It returns copies, and leaves out objects that
// cannot be decoded. It is safe for concurrent use. Make it with [Watch], [Refers] or [WatchAs].
type Reader[T reconcile.Object] struct {
	kind    string
	indexer cache.Indexer
	keyIn   func(namespace, name string) cache.ObjectName
	// copyOf returns a copy of a cached object. ok is false if the object cannot be decoded.
	copyOf func(T) (object T, ok bool)
	prefix string   // of the names of indexes
	shared []string // the names of shared indexes
}

// Watch makes the controller of builder read objects of type T. A change of an object enqueues the
// keys that keys returns for its old and its new state. keys must be a pure function of the object and
// of what a [Reader] returns: it runs while events are delivered, so it must not call the API or take
// locks. If it panics, the event is lost, and the controller is unhealthy.
func Watch[T, P Object](builder *Builder[P], keys func(T) []cache.ObjectName, opts ...Option) *Reader[T] {
	builder.declares("Watch", keys != nil)
	r := newRead[T](builder, "Watch", opts)
	if r == nil {
		return &Reader[T]{}
	}
	builder.watches = append(builder.watches, func(l *reconcile.Loop) {
		reconcile.WatchChanges(l, r.informer, changesOf[T](r.changes), inScope(builder, r, keys))
	})
	return r.reader()
}

// Refers makes the controller of builder read the objects of type T that its own objects refer to by
// name, in their own namespace; objects of a [ClusterScoped] type T have none. names returns these
// names. A change of an object of type T enqueues the objects that refer to it. names must be a pure
// function of the object, and may return empty ones, which refer to nothing. A kind can refer to another
// kind by one call of Refers.
func Refers[T, P Object](builder *Builder[P], names func(P) []string, opts ...Option) *Reader[T] {
	builder.declares("Refers", names != nil)
	referred, owners := newRead[T](builder, "Refers", opts), builder.resource
	if referred == nil {
		return &Reader[T]{}
	}
	if owners.cluster && !referred.cluster {
		builder.fail(misuse.Errorf("%s refers from a %s, which has no namespace, to a %s, which has one: use Watch, whose function returns the keys",
			builder.context.name, owners.kind.Kind, referred.kind.Kind))
		return &Reader[T]{}
	}
	if !builder.once("Refers", referred.name, "with a function that returns all names") {
		return &Reader[T]{}
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
		reconcile.Watch(l, referred.informer, inScope(builder, referred, func(object T) (keys []cache.ObjectName) {
			referring, _ := owners.informer.GetIndexer().ByIndex(index, cache.MetaObjectToName(object).String())
			for _, owner := range referring {
				keys = append(keys, cache.MetaObjectToName(owner.(P)))
			}
			return keys
		}))
	})
	return referred.reader()
}

// changesOf returns the function of [Changes].
func changesOf[T any](given any) func(before, now T) bool {
	if changes, ok := given.(func(before, now T) bool); ok {
		return changes
	}
	return func(T, T) bool { return true }
}

// newRead returns the resource for objects that a controller only reads, or nil if the program has made a
// mistake.
func newRead[T, P Object](builder *Builder[P], use string, opts []Option) *resource[T] {
	resource, err := newResource[T](builder.context, use, opts)
	builder.fail(err)
	if len(builder.errs) > 0 {
		return nil
	}
	return resource
}

// reader returns a reader of the cached objects.
func (r *resource[T]) reader() *Reader[T] {
	return &Reader[T]{
		kind: r.kind.Kind, indexer: r.informer.GetIndexer(), keyIn: r.keyIn, prefix: r.manager + ": ", shared: r.shared,
		copyOf: func(cached T) (T, bool) {
			if tolerant.DecodeError(cached) != nil {
				return cached, false
			}
			return cached.DeepCopyObject().(T), true
		},
	}
}

// Get returns a copy of the cached object with that name. namespace is ignored for a [ClusterScoped]
// kind. ok is false if there is none, or if it cannot be decoded.
func (r *Reader[T]) Get(namespace, name string) (object T, ok bool) {
	cached, found, err := r.indexer.GetByKey(r.keyIn(namespace, name).String())
	if err != nil || !found {
		return object, false
	}
	if object, ok = r.copyOf(cached.(T)); !ok {
		return *new(T), false
	}
	return object, true
}

// List returns copies of the cached objects of a namespace, in no particular order; of all objects if
// namespace is empty. It returns an empty list, never nil, if there are none, as do ByIndex and Find.
func (r *Reader[T]) List(namespace string) []T {
	if namespace == "" {
		return r.copiesOf(r.indexer.List())
	}
	if _, indexed := r.indexer.GetIndexers()[cache.NamespaceIndex]; indexed {
		return r.copiesOf(r.entry(cache.NamespaceIndex, namespace))
	}
	return r.copiesOf(slices.DeleteFunc(r.indexer.List(), func(obj any) bool {
		return obj.(T).GetNamespace() != namespace
	}))
}

// ByIndex returns copies of the cached objects for which the function of [Index] or [SharedIndex] returns the
// value, in no particular order. It panics if the kind has no index of that name.
func (r *Reader[T]) ByIndex(name, value string) []T {
	return r.Find(name, value, func(T) bool { return true })
}

// Find is [Reader.ByIndex] for the objects for which matches returns true. matches gets the cached objects,
// which it must not change, so that only what it finds is copied.
func (r *Reader[T]) Find(name, value string, matches func(T) bool) []T {
	if !slices.Contains(r.shared, name) {
		name = r.prefix + name
	}
	return r.copiesOf(slices.DeleteFunc(r.entry(name, value), func(obj any) bool { return !matches(obj.(T)) }))
}

// entry returns the cached objects of an entry of an index.
func (r *Reader[T]) entry(index, value string) []any {
	cached, err := r.indexer.ByIndex(index, value)
	if err != nil {
		panic(misuse.Errorf("reading %s by index: %w: give the option Index", r.kind, err))
	}
	return cached
}

func (r *Reader[T]) copiesOf(cached []any) []T {
	objects := make([]T, 0, len(cached))
	for _, obj := range cached {
		if object, ok := r.copyOf(obj.(T)); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
