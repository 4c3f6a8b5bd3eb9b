// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"reflect"
	"strconv"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Record is what the cache holds for an object that is read with [WatchAs]: its name, and the facts
// about it that the controller needs. It cannot be changed, so readers return it without a copy. It
// takes 32 bytes and the size of R.
type Record[R comparable] struct {
	name      string
	namespace unique.Handle[string]
	version   uint64 // resourceVersion; with the bit undecodable if the object cannot be decoded
	facts     R
}

// undecodable is never part of a version, which is a positive int64 in etcd.
const undecodable = 1 << 63

// Facts returns the facts about the object.
func (r *Record[R]) Facts() R { return r.facts }

// GetName returns the name of the object.
func (r *Record[R]) GetName() string { return r.name }

// GetNamespace returns the namespace of the object.
func (r *Record[R]) GetNamespace() string { return r.namespace.Value() }

// GetResourceVersion returns the resourceVersion of the object that the record was made from.
func (r *Record[R]) GetResourceVersion() string {
	return strconv.FormatUint(r.version&^undecodable, 10)
}

// GetObjectMeta returns name, namespace and resourceVersion of the object.
func (r *Record[R]) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: r.name, Namespace: r.namespace.Value(), ResourceVersion: r.GetResourceVersion()}
}

func (r *Record[R]) isUndecodable() bool { return r.version&undecodable != 0 }

// Facts are what the cache holds about an object of type T, for [WatchAs]. R is the type itself, whose
// values have no pointers, so that they can be compared. A string that is a part of one of the object
// keeps all of that in memory: copy it with strings.Clone. Use [unique.Make] for strings that many
// objects share.
type Facts[T any, R any] interface {
	comparable
	// FactsOf returns the facts about an object, which it must not change. It must be a pure function of
	// the object: it is called on the zero value of R.
	FactsOf(object T) R
}

// WatchAs is like [Watch], but the cache holds only a [Record] of each object, with the facts of type R
// about it. So a cache of many large objects can be small. A change that does not change the facts
// enqueues nothing:
//
//	type place struct{ node unique.Handle[string] }
//
//	func (place) FactsOf(pod *corev1.Pod) place { return place{unique.Make(pod.Spec.NodeName)} }
//
//	pods := controller.WatchAs(nodes, func(pod *controller.Record[place]) []cache.ObjectName {
//		return []cache.ObjectName{{Name: pod.Facts().node.Value()}}
//	})
//
// keys and the functions of [Index] and [Changes] get the record. Neither they nor FactsOf are called for an
// object that cannot be decoded, and a reader leaves it out: for [Changes] it is gone. If FactsOf panics on
// an object, the object counts as undecodable, and the controller is unhealthy.
//
// With [MetadataOf], T is *metav1.PartialObjectMetadata. The cache has no index by namespace: to list the
// records of one namespace, [Reader.List] reads all.
//
// All controllers of a program that read the kind must read it by WatchAs, with the same type of facts.
// Otherwise the program ends at its start.
func WatchAs[R Facts[T, R], T, P Object](
	builder *Builder[P], keys func(*Record[R]) []cache.ObjectName, opts ...Option,
) *Reader[*Record[R]] {
	builder.declares("WatchAs", keys != nil)
	if pointer := pointerIn(reflect.TypeFor[R]()); pointer != nil {
		builder.fail(misuse.Errorf("%s: the facts %v of WatchAs have a pointer, %v, so two records of an object would "+
			"never be equal: use values, and unique.Handle[string] for strings that many objects share",
			builder.context.name, reflect.TypeFor[R](), pointer))
	}
	c := builder.context
	resource, o, err := describe[T](c, "WatchAs", reflect.TypeFor[*Record[R]](), opts)
	builder.fail(err)
	if len(builder.errs) > 0 {
		return &Reader[*Record[R]]{}
	}
	o.informer = append(o.informer, informers.WithItem(newOf[T]()),
		informers.WithTransform(compact[R, T]), informers.WithIndexers(cache.Indexers{}))
	informerWith, err := informerOf[*Record[R]](c, resource, o)
	builder.fail(err)
	if err != nil {
		return &Reader[*Record[R]]{}
	}
	informer := informerWith(o.indexes...)
	resource.declare(c, o)
	changes := changesOf[*Record[R]](resource.changes)
	builder.watches = append(builder.watches, func(l *reconcile.Loop) {
		concerns := func(before, now *Record[R]) bool {
			before, now = readable(before), readable(now)
			return before != now && (before == nil || now == nil || before.facts != now.facts) && changes(before, now)
		}
		reconcile.WatchChanges(l, informer, concerns, inScope(builder, resource, func(r *Record[R]) []cache.ObjectName {
			if r.isUndecodable() {
				return nil
			}
			return keys(r)
		}))
	})
	return &Reader[*Record[R]]{
		kind: resource.kind.Kind, indexer: informer.GetIndexer(), keyIn: resource.keyIn, prefix: c.name + ": ",
		shared: resource.shared,
		copyOf: func(r *Record[R]) (*Record[R], bool) { return r, !r.isUndecodable() },
	}
}

// compact is the transform from objects to records. It returns a record unchanged, because transforms may
// be called twice.
func compact[R Facts[T, R], T Object](obj any) (any, error) {
	object, ok := obj.(T)
	if !ok {
		return obj, nil
	}
	if _, err := strconv.ParseUint(object.GetResourceVersion(), 10, 63); err != nil {
		return nil, fmt.Errorf("reading the resourceVersion: %w", err)
	}
	return NewRecord[R](object), nil
}

// NewRecord returns the record of an object, as [WatchAs] caches it. It is for tests of functions that get
// records. A resourceVersion that is not a number counts as 0.
func NewRecord[R Facts[T, R], T Object](object T) *Record[R] {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 63)
	r := &Record[R]{name: object.GetName(), namespace: unique.Make(object.GetNamespace()), version: version}
	if tolerant.DecodeError(object) != nil {
		r.version |= undecodable
	} else {
		r.facts = r.facts.FactsOf(object)
	}
	return r
}

// pointerIn returns the type of a pointer that a type has, or nil. Those of unique.Handle and time.Time are
// compared as values.
func pointerIn(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Chan, reflect.Interface:
		return t
	case reflect.Array:
		return pointerIn(t.Elem())
	case reflect.Struct:
		if t.PkgPath() == "unique" || t.PkgPath() == "time" {
			return nil
		}
		for field := range t.Fields() {
			if pointer := pointerIn(field.Type); pointer != nil {
				return pointer
			}
		}
	}
	return nil
}

// readable returns a record as readers see it: nil if the object cannot be decoded.
func readable[R comparable](r *Record[R]) *Record[R] {
	if r == nil || r.isUndecodable() {
		return nil
	}
	return r
}
