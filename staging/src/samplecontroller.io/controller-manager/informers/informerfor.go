// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/misuse"
)

// Source is what an informer reads from. Generated clients implement it, and so do the
// clients of client-go's metadata and dynamic packages. L is the type of its lists.
type Source[L runtime.Object] interface {
	// List returns a list of the objects that options select.
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	// Watch returns the events of these objects from options.ResourceVersion on.
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Option configures what informers cache, and how.
type Option func(*options)

type options struct {
	selector   string
	transforms []cache.TransformFunc
	// managedFields is whether the managed fields are kept.
	managedFields bool
	indexers      cache.Indexers
	added         cache.Indexers // by WithIndex
	shared        cache.Indexers // by WithSharedIndex
	item          runtime.Object // by WithItem
}

// WithSelector limits an informer to the objects that match a label selector. By default, and if
// labels is empty, it caches all objects. An invalid selector is an error of each list.
func WithSelector(labels string) Option { return func(o *options) { o.selector = labels } }

// WithTransform makes an informer cache the result of transform instead of the object.
// transform may be called twice for an object, and is also called for deleted objects. It
// gets the result of the transforms given before, first those of the factory.
//
// If transform panics or fails on an object, a placeholder with only the metadata is
// transformed and cached instead: see package tolerant. If that fails too, the placeholder itself
// is cached. If transform changes the type, the object is left out, or the list fails.
// [Resource] and [Factory.CheckWatches] report the failure.
func WithTransform(transform cache.TransformFunc) Option {
	return func(o *options) { o.transforms = append(o.transforms, transform) }
}

// WithManagedFields decides whether the managed fields of objects are kept; by default they are.
// They use more memory than all the rest of an object, so package manager turns them off. An
// informer whose transform reads them turns them on again.
func WithManagedFields(keep bool) Option { return func(o *options) { o.managedFields = keep } }

// dropManagedFields is a transform.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// WithIndexers replaces the default index by namespace, which Listers use. An object on which
// an index function panics or fails is not in that index. [Resource] and
// [Factory.CheckWatches] report it.
func WithIndexers(indexers cache.Indexers) Option {
	return func(o *options) { o.indexers = indexers }
}

// WithIndex adds an index to the informer, also if another call has created the informer. Use a name
// that no other caller uses, such as one that starts with the name of the controller. index may
// panic or fail, as in [WithIndexers].
func WithIndex(name string, index cache.IndexFunc) Option {
	return func(o *options) {
		if o.added == nil {
			o.added = cache.Indexers{}
		}
		o.added[name] = index
	}
}

// WithSharedIndex is like [WithIndex], but the index belongs to all callers that give this name: the first
// call adds it, and later ones must mean the same by it.
func WithSharedIndex(name string, index cache.IndexFunc) Option {
	return func(o *options) {
		if o.shared == nil {
			o.shared = cache.Indexers{}
		}
		o.shared[name] = index
	}
}

// WithItem sets an empty object of the type that the source of an informer lists. It is needed only if
// L of [InformerFor] is runtime.Object, and a transform changes the type to T.
func WithItem(example runtime.Object) Option { return func(o *options) { o.item = example } }

// InformerFor returns the factory's informer of the resource, whose objects have type T, and
// creates it at the first call. It reads from source, which must be a client of that
// resource. opts apply after the options of the factory.
//
// All calls for a resource share one informer. The first call decides its source, indexers,
// and transform; an index of [WithIndex] is added by each call. Later calls must use the same
// version, type and selector, give a transform if and only if the first call did, and keep the managed
// fields if and only if that did. InformerFor panics otherwise, if source does not list T and no
// transform is given, or if the name of an index is in use. A source whose L is runtime.Object lists T,
// unless [WithItem] says otherwise.
func InformerFor[T cache.Object, L runtime.Object](f *Factory, resource schema.GroupVersionResource, source Source[L],
	opts ...Option) cache.TypedSharedIndexInformer[T] {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	o := options{managedFields: true, indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}}
	for _, opt := range slices.Concat(f.defaults, opts) {
		opt(&o)
	}
	if !o.managedFields {
		o.transforms = slices.Insert(o.transforms, 0, dropManagedFields)
	}
	transformed := hasTransform(opts)
	i := f.informers[resource.GroupResource()]
	if i == nil {
		item := o.item
		if item == nil {
			item = itemOf[T, L]()
		}
		if !transformed && reflect.TypeOf(item) != reflect.TypeFor[T]() {
			panic(misuse.Errorf("getting the informer for %v as %v: its source lists %T, and no transform is given", resource, reflect.TypeFor[T](), item))
		}
		i = newInformer[T](f, resource, source, item, o)
		i.transformed, i.managedFields, i.cached = transformed, o.managedFields, reflect.TypeFor[T]()
		f.informers[resource.GroupResource()] = i
	}
	typed, ok := i.typed.(cache.TypedSharedIndexInformer[T])
	if !ok || i.resource != resource {
		panic(misuse.Errorf("getting the informer for %v as %v: all callers share one informer, which is for %v as "+
			"%v: read the resource in one version, and as one type, in all calls",
			resource, reflect.TypeFor[T](), i.resource, i.cached))
	}
	if i.selector != o.selector {
		panic(misuse.Errorf("getting the informer for %v with selector %q: all callers share one informer, which has selector %q: use the same selector in all calls, or none in all calls and filter in each controller",
			resource, o.selector, i.selector))
	}
	if i.transformed != transformed {
		panic(misuse.Errorf("getting the informer for %v: all callers share one informer, and a transform may drop "+
			"what another caller reads: give the same transform in all calls, or none", resource))
	}
	if i.managedFields != o.managedFields {
		panic(misuse.Errorf("getting the informer for %v: all callers share one informer, which keeps the managed "+
			"fields of objects or drops them: keep them in all calls, or in none", resource))
	}
	added := maps.Clone(o.shared)
	maps.DeleteFunc(added, func(name string, _ cache.IndexFunc) bool { return i.GetIndexer().GetIndexers()[name] != nil })
	if err := errors.Join(i.AddIndexers(i.guard.indexers(added)), i.AddIndexers(i.guard.indexers(o.added))); err != nil {
		panic(misuse.Errorf("adding an index to the informer for %v: %w: give each index a name of its own, or give "+
			"it once and share what reads it", resource, err))
	}
	return typed
}

// hasTransform reports whether the options of a call include a transform. A transform of the
// factory does not count, because it is for objects of all types.
func hasTransform(opts []Option) bool {
	var own options
	for _, opt := range opts {
		opt(&own)
	}
	return len(own.transforms) > 0
}

// newInformer returns an informer whose resource is not yet served.
func newInformer[T cache.Object, L runtime.Object](f *Factory, resource schema.GroupVersionResource, source Source[L],
	item runtime.Object, o options) *informer {
	i := &informer{resource: resource, selector: o.selector, example: item, factory: f, state: state{since: time.Now()}}
	i.guard = guard{resource: i.name(), item: reflect.TypeOf(item), same: reflect.TypeOf(item) == reflect.TypeFor[T](),
		failures: map[call]error{}}
	p := retryingListerWatcher[L]{source, o.selector, i}
	i.SharedIndexInformer = cache.NewSharedIndexInformer(
		// a fake clientset that cannot stream says so
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: p.list,
			WatchFuncWithContext: p.watch}, source),
		item, 0, i.guard.indexers(o.indexers))
	// it has not started
	utilruntime.Must(errors.Join(i.SetTransform(i.guard.transform(o.transforms)),
		i.SetWatchErrorHandlerWithContext(i.relist)))
	i.typed = cache.NewTypedSharedIndexInformer[T](i)
	return i
}

// itemOf returns an object of the item type of L. If L is runtime.Object, it returns one of
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
	panic(misuse.Errorf("%v is not a list of objects", list))
}
