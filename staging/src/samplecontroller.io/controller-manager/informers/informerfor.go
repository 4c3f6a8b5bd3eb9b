// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source is where an informer reads from. Every generated client of a resource is one,
// and so are those of packages metadata and dynamic of client-go. L is the type of its
// lists.
type Source[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Option says what informers hold, and how.
type Option func(*options)

type options struct {
	selector  string
	transform cache.TransformFunc
	resync    time.Duration
	indexers  cache.Indexers
	watchList bool
}

// WithSelector has an informer hold the objects that a label selector matches. Without
// it, an informer holds all.
func WithSelector(labels string) Option { return func(o *options) { o.selector = labels } }

// WithTransform has an informer hold what transform makes of the objects. It may be called
// twice for an object, and is called for what is deleted, too.
func WithTransform(transform cache.TransformFunc) Option {
	return func(o *options) { o.transform = transform }
}

// WithResync has an informer tell of all objects anew in each period. Without it, or if
// the period is 0, it tells of changes only.
func WithResync(period time.Duration) Option { return func(o *options) { o.resync = period } }

// WithIndexers gives an informer indexes in place of that by namespace, which Listers use.
func WithIndexers(indexers cache.Indexers) Option {
	return func(o *options) { o.indexers = indexers }
}

// WithoutWatchList has informers list first and then watch. It is for tests: fake
// clientsets cannot stream what there is.
func WithoutWatchList() Option { return func(o *options) { o.watchList = false } }

// InformerFor returns the factory's informer of the resource, whose objects are of type T, and
// makes it if nobody has asked before. It reads from source, which must be a client of that
// resource. The options, after those of the factory, say how.
//
// All calls for a resource share one informer. The first call decides its source, indexers,
// transform and resync; later calls must ask for the same version, type and selector, and
// have a transform of their own if the first has. InformerFor panics if they do not, or if source
// does not list T and no transform makes T. A source whose L is runtime.Object lists T.
func InformerFor[T cache.Object, L runtime.Object](f *Factory, resource schema.GroupVersionResource, source Source[L], opts ...Option) cache.TypedSharedIndexInformer[T] {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	o := options{indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, watchList: true}
	for _, opt := range slices.Concat(f.defaults, opts) {
		opt(&o)
	}
	transformed := hasTransform(opts)
	i := f.informers[resource.GroupResource()]
	if i == nil {
		item := itemOf[T, L]()
		if !transformed && reflect.TypeOf(item) != reflect.TypeFor[T]() {
			panic(fmt.Sprintf("asking for %v as %v: its source lists %T, and no transform is given", resource, reflect.TypeFor[T](), item))
		}
		i = newInformer[T](f, resource, source, item, o)
		i.transformed = transformed
		f.informers[resource.GroupResource()] = i
	}
	typed, ok := i.typed.(cache.TypedSharedIndexInformer[T])
	if !ok || i.resource != resource {
		panic(fmt.Sprintf("asking for %v as %v: there is an informer of %v, which is a %T", resource, reflect.TypeFor[T](), i.resource, i.typed))
	}
	if i.selector != o.selector {
		panic(fmt.Sprintf("asking for %v with selector %q: its informer has selector %q, and all callers share it: use the same selector in all calls, or none in all calls and filter in each controller",
			resource, o.selector, i.selector))
	}
	if i.transformed && !transformed {
		panic(fmt.Sprintf("asking for %v: its informer has a transform, which may drop what this caller reads, and all callers share it: give the same transform in all calls, or none", resource))
	}
	return typed
}

// hasTransform tells whether the options of a call have a transform. That of the factory is for
// objects of all types.
func hasTransform(opts []Option) bool {
	var own options
	for _, opt := range opts {
		opt(&own)
	}
	return own.transform != nil
}

// newInformer returns an informer that is not yet served.
func newInformer[T cache.Object, L runtime.Object](f *Factory, resource schema.GroupVersionResource, source Source[L], item runtime.Object, o options) *informer {
	i := &informer{resource: resource, selector: o.selector, factory: f, opened: make(chan struct{}, 1), since: time.Now()}
	i.err = fmt.Errorf("%w: %s", ErrNotSynced, i.name())
	p := retryingListerWatcher[L]{source, o.selector, i}
	// Who cannot stream says so: a source of a test, or the option.
	streams := any(source)
	if !o.watchList {
		streams = noWatchList{}
	}
	i.SharedIndexInformer = cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: p.list, WatchFuncWithContext: p.watch}, streams),
		item, o.resync, o.indexers)
	utilruntime.Must(errors.Join(i.SetTransform(o.transform), i.SetWatchErrorHandlerWithContext(i.failed))) // it has not started
	i.typed = cache.NewTypedSharedIndexInformer[T](i.SharedIndexInformer)
	return i
}

type noWatchList struct{}

// IsWatchListSemanticsUnSupported is what client-go asks.
func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// itemOf returns an object of the type that lists of type L hold; if any list is an L, one of
// type T.
func itemOf[T any, L runtime.Object]() runtime.Object {
	list := reflect.TypeFor[L]()
	if list == reflect.TypeFor[runtime.Object]() {
		if item, ok := reflect.TypeAssert[runtime.Object](reflect.New(reflect.TypeFor[T]().Elem())); ok {
			return item
		}
	}
	if list.Kind() == reflect.Pointer && list.Elem().Kind() == reflect.Struct {
		if items, ok := list.Elem().FieldByName("Items"); ok && items.Type.Kind() == reflect.Slice {
			if item, ok := reflect.TypeAssert[runtime.Object](reflect.New(items.Type.Elem())); ok {
				return item
			}
		}
	}
	panic(fmt.Sprintf("%v is no list of objects", list))
}
