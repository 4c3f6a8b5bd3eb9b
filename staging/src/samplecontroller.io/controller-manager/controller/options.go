// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
)

// Option determines which objects of a kind a controller reads, from where, what the cache holds, and what
// the controller may write. An option that a function has no use for ends the program at its start.
type Option func(*kindOptions)

type kindOptions struct {
	selector string
	resource string
	cluster  bool
	queue    string
	pauseKey string // of the annotation that transforms keep

	secondary bool
	madeBy    []string

	mayPatch, mayPatchStatus, mayDelete bool

	metadata schema.GroupVersionKind // the kind, if only metadata is read
	informer []informers.Option      // for each use of the informer
	indexes  []informers.Option      // for the first one
	// prefix is that of the names of indexes, so that those of two controllers differ. shared are the names of
	// indexes without it.
	prefix  string
	shared  []string
	changes any // func(before, now T) bool, where T is what the cache holds
	// errs are the mistakes that the options have found.
	errs []error
	// kind is the type of the objects, and cached that of what the cache holds for them.
	kind, cached reflect.Type
	// use is the function that the options were given to, such as Watch.
	use string
}

// groupVersionKind returns the kind of the objects.
func (o *kindOptions) groupVersionKind(c *Context) (schema.GroupVersionKind, error) {
	if o.metadata.Kind != "" {
		return o.metadata, nil
	}
	example, _ := reflect.TypeAssert[runtime.Object](reflect.New(o.kind.Elem()))
	kinds, _, err := c.shared.Scheme.ObjectKinds(example)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("%s reads %v, which is not registered in the scheme: add it in Program.Scheme: %w", c.name, o.kind, err)
	}
	return kinds[0], nil
}

// optionsOf returns the options that were given to use for the kind T of a controller, whose cache holds
// objects of type cached.
func optionsOf[T Object](c *Context, use string, cached reflect.Type, opts []Option) (kindOptions, error) {
	o := kindOptions{prefix: c.name + ": ", kind: reflect.TypeFor[T](), cached: cached, use: use}
	o.pauseKey = c.shared.pauseKey()
	for _, opt := range opts {
		opt(&o)
	}
	if o.cluster && c.Namespace() != "" {
		o.errs = append(o.errs, fmt.Errorf("%s reads objects without a namespace (%v), so it cannot run with --namespace=%s: leave out --namespace, or disable the controller",
			c.name, o.kind, c.Namespace()))
	}
	if isMetadata := o.kind == reflect.TypeFor[*metav1.PartialObjectMetadata](); isMetadata != (o.metadata.Kind != "") {
		o.errs = append(o.errs, fmt.Errorf("%s: read metadata only as Watch[*metav1.PartialObjectMetadata] or Refers[*metav1.PartialObjectMetadata], with the option MetadataOf", c.name))
	}
	if len(o.errs) > 0 {
		return o, o.errs[0]
	}
	o.informer = append(o.informer, informers.WithSelector(o.selector))
	return o, nil
}

// Selector restricts the objects to those that match a label selector. An object that no
// longer matches counts as deleted. All controllers of a program that read the kind must use
// the same selector, in the syntax of kubectl -l; otherwise the program ends at its start.
func Selector(labels string) Option { return func(o *kindOptions) { o.selector = labels } }

// Resource sets the plural of the kind as in its URL. It is needed only for irregular plurals,
// such as "gateways" of Gateway. With a wrong plural, the controller waits for an API that nobody serves,
// and says so.
func Resource(plural string) Option { return func(o *kindOptions) { o.resource = plural } }

// ClusterScoped declares that the objects of the kind have no namespace, like Nodes. A program with
// such a controller cannot run with --namespace. If the declaration is wrong, the first object of
// the kind fails with an error that says so. If the controller only owns or reads the kind, it is Degraded.
func ClusterScoped() Option { return func(o *kindOptions) { o.cluster = true } }

// MetadataOf makes [Watch] or [Refers] for *metav1.PartialObjectMetadata read only the metadata of the
// objects of a kind, which need not be in the scheme. The cache then is small, however large the
// objects are. No other controller of the program can read whole objects of that kind: the program
// then ends at its start.
func MetadataOf(kind schema.GroupVersionKind) Option {
	return func(o *kindOptions) { o.metadata = kind }
}

// Queue names the queue of a controller that is an argument of [Join]: its metrics and log lines have
// the name of the controller, a dash and this name. It is for [For] only.
func Queue(name string) Option {
	return func(o *kindOptions) {
		o.only("Queue", "For")
		o.queue = name
	}
}

// Index adds an index to the cache of a kind that is read by [Watch], [Refers] or [WatchAs]: values
// returns the values of an object under which [Reader.ByIndex] finds it. values must be a pure function of
// the object, which it must not change. T is the type of the objects, or *Record[R] for [WatchAs]. If
// values panics on an object, that object is not in the index, and the controller is unhealthy. All indexes
// that the controller adds to a cache need different names.
func Index[T reconcile.Object](name string, values func(T) []string) Option {
	return func(o *kindOptions) {
		o.only("Index", "Watch", "Refers", "WatchAs")
		if !o.accepts(reflect.TypeFor[T](), o.cached, "Index", values != nil) {
			return
		}
		o.indexes = append(o.indexes, informers.WithIndex(o.prefix+name, indexOf(values)))
	}
}

// SharedIndex is like [Index], but all controllers of the program that give it under this name share one
// index. It saves memory in a cache of many objects. Each must mean the same by the name: the first
// function is used.
func SharedIndex[T reconcile.Object](name string, values func(T) []string) Option {
	return func(o *kindOptions) {
		o.only("SharedIndex", "Watch", "Refers", "WatchAs")
		if !o.accepts(reflect.TypeFor[T](), o.cached, "SharedIndex", values != nil) {
			return
		}
		o.shared = append(o.shared, name)
		o.indexes = append(o.indexes, informers.WithSharedIndex(name, indexOf(values)))
	}
}

// Changes makes [Watch] or [WatchAs] ignore the events for which concerns returns false. concerns gets an
// object before and after the event: before is nil for an object that is new in the cache, and now is nil for
// one that is gone. It runs while events are delivered, so it must not call the API or wait. It may remember
// what an event shows only once. T is the type of the objects, or *Record[R] for [WatchAs].
func Changes[T reconcile.Object](concerns func(before, now T) bool) Option {
	return func(o *kindOptions) {
		o.only("Changes", "Watch", "WatchAs")
		if o.accepts(reflect.TypeFor[T](), o.cached, "Changes", concerns != nil) {
			o.changes = concerns
		}
	}
}

// ManagedFields keeps the managed fields of the objects in the cache, which package manager drops by
// default. All controllers that read the kind must give the option, or none; otherwise the program ends at
// its start.
func ManagedFields() Option {
	return func(o *kindOptions) { o.informer = append(o.informer, informers.WithManagedFields(true)) }
}

// indexOf returns an untyped index function.
func indexOf[T reconcile.Object](values func(T) []string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if r, ok := obj.(interface{ isUndecodable() bool }); ok && r.isUndecodable() {
			return nil, nil
		}
		return values(obj.(T)), nil
	}
}

// Transform changes each object before it is cached, for example to drop large fields that no
// controller of the program reads. All controllers that read the kind must give the option, or none;
// otherwise the program ends at its start. That of the first one is used, after the transforms of the
// program. Fields that are dropped are not written: do not set them. If change panics on an object, the
// object counts as undecodable.
//
// A dropped element of a list would shift the others, so a list from which elements were dropped
// cannot be changed: keep the list, and clear fields of its elements.
func Transform[T Object](change func(T)) Option {
	return func(o *kindOptions) {
		if !o.accepts(reflect.TypeFor[T](), o.kind, "Transform", change != nil) {
			return
		}
		o.informer = append(o.informer, informers.WithTransform(func(obj any) (any, error) {
			if object, ok := obj.(T); ok {
				paused, isPaused := object.GetAnnotations()[o.pauseKey]
				change(object)
				if isPaused {
					keepAnnotation(object, o.pauseKey, paused)
				}
			}
			return obj, nil
		}))
	}
}

// keepAnnotation adds an annotation again that a transform has dropped.
func keepAnnotation(object metav1.Object, key, value string) {
	annotations := object.GetAnnotations()
	if _, ok := annotations[key]; ok {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// only records a mistake if an option is not for the function that it was given to.
func (o *kindOptions) only(option string, uses ...string) {
	if !slices.Contains(uses, o.use) {
		o.errs = append(o.errs, fmt.Errorf("%s%s of %v has no option %s, which is for %s",
			o.prefix, o.use, o.kind, option, strings.Join(uses, " and ")))
	}
}

// accepts reports whether an option for objects of type given is for those of type want.
func (o *kindOptions) accepts(given, want reflect.Type, option string, hasFunc bool) bool {
	switch {
	case given != want:
		o.errs = append(o.errs, fmt.Errorf("%s for %v was given to a kind of type %v", option, given, want))
	case !hasFunc:
		o.errs = append(o.errs, fmt.Errorf("%s for %v needs a function", option, given))
	}
	return given == want && hasFunc
}
