// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Object is an API object. Its type is a pointer to a struct, such as *corev1.ConfigMap.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// resource reads and writes the objects of one kind.
type resource[T Object] struct {
	kind     schema.GroupVersionKind
	name     schema.GroupVersionResource
	selector labels.Selector
	informer cache.TypedSharedIndexInformer[T]
	client   func(namespace string) *gentype.ClientWithList[T, runtime.Object]
	manager  string
	writes   *writes.Transport
	sparse   bool   // see differ
	cluster  bool   // the objects have no namespace
	use      string // the function that has declared the kind, such as For
	queue    string
	// secondary is whether another controller owns the conditions.
	secondary bool
	changes   any      // see Changes
	shared    []string // see SharedIndex
	madeBy    []string // field managers: see MadeBy
	// informerWith returns the informer again, with more options.
	informerWith func(...informers.Option) cache.TypedSharedIndexInformer[T]
	dryRun       bool         // see Context.DryRun
	noted        atomic.Bool  // a patch that changed nothing has been logged
	note         func(string) // for the status page
}

// newResource returns a resource that reads from the shared informer of the kind and writes as
// the controller of the context.
func newResource[T Object](c *Context, use string, opts []Option) (*resource[T], error) {
	r, o, err := describe[T](c, use, reflect.TypeFor[T](), opts)
	if err != nil {
		return nil, err
	}
	if r.informerWith, err = informerOf[T](c, r, o); err != nil {
		return nil, err
	}
	if o.metadata.Kind == "" {
		if r.client, err = tolerant.ClientFor[T, runtime.Object](c.ClientConfig(), c.shared.Scheme, r.name); err != nil {
			return nil, err
		}
	}
	r.informer = r.informerWith(o.indexes...)
	r.declare(c, o)
	return r, nil
}

// describe returns a resource without informer and client. The cache holds objects of type cached.
func describe[T Object](c *Context, use string, cached reflect.Type, opts []Option) (*resource[T], kindOptions, error) {
	o, err := optionsOf[T](c, use, cached, opts)
	if err != nil {
		return nil, o, err
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, o, fmt.Errorf("%s: invalid selector %q of %v: %w", c.name, o.selector, o.kind, err)
	}
	kind, err := o.groupVersionKind(c)
	if err != nil {
		return nil, o, err
	}
	name, _ := meta.UnsafeGuessKindToResource(kind)
	if o.resource != "" {
		name.Resource = o.resource
	}
	return &resource[T]{
		kind: kind, name: name, selector: selector, manager: c.name, writes: c.writes(), dryRun: c.DryRun(),
		cluster: o.cluster, use: use, queue: o.queue, secondary: o.secondary,
		madeBy: o.madeBy, changes: o.changes, shared: o.shared,
		note: func(text string) { c.shared.note(c.name, text) },
		// The API server encodes built-in objects like this process, and stores custom ones as
		// they were written.
		sparse: !tolerant.IsBuiltIn[T](kind),
	}, o, nil
}

// informerOf returns a function that returns the informer of the kind, whose cache holds objects of type
// C.
func informerOf[C reconcile.Object, T Object](
	c *Context, r *resource[T], o kindOptions,
) (func(...informers.Option) cache.TypedSharedIndexInformer[C], error) {
	if o.metadata.Kind != "" {
		reader, err := metadata.NewForConfig(c.ReadConfig())
		if err != nil {
			return nil, fmt.Errorf("%s reads metadata of %s: %w", c.name, r.name.Resource, err)
		}
		return informerFrom[C](c, r.name, reader.Resource(r.name).Namespace(c.Namespace()), o), nil
	}
	reader, err := tolerant.ClientFor[T, runtime.Object](c.ReadConfig(), c.shared.Scheme, r.name)
	if err != nil {
		return nil, fmt.Errorf("%s reads %v, with Program.Scheme: %w", c.name, o.kind, err)
	}
	return informerFrom[C](c, r.name, reader(c.Namespace()), o), nil
}

func informerFrom[C reconcile.Object, L runtime.Object](
	c *Context, name schema.GroupVersionResource, source informers.Source[L], o kindOptions,
) func(...informers.Option) cache.TypedSharedIndexInformer[C] {
	return func(more ...informers.Option) cache.TypedSharedIndexInformer[C] {
		return informers.InformerFor[C](c.Informers(), name, source, slices.Concat(o.informer, more)...)
	}
}

func newOf[T any]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}

// cached returns the object from the cache.
func (r *resource[T]) cached(key cache.ObjectName) (object T, found bool, err error) {
	cached, found, err := r.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !found {
		return object, false, err
	}
	return cached.(T), true, nil
}

// keyIn returns the key of an object of the kind.
func (r *resource[T]) keyIn(namespace, name string) cache.ObjectName {
	if r.cluster {
		namespace = ""
	}
	return cache.NewObjectName(namespace, name)
}

// live returns the object from the API server, whether or not the selector matches it.
func (r *resource[T]) live(ctx context.Context, key cache.ObjectName) (object T, found bool, err error) {
	object, found, _, err = r.liveAt(ctx, key)
	return object, found, err
}

// liveAt also returns the resourceVersion that the API server has reached. It lists one object instead
// of getting it, because the informer needs the permission to list anyway.
func (r *resource[T]) liveAt(ctx context.Context,
	key cache.ObjectName) (object T, found bool, version string, err error) {
	list, err := r.client(key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
	})
	if err != nil {
		return object, false, "", fmt.Errorf("reading %s %s: %w", r.kind.Kind, key, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if listed, ok := item.(T); ok && listed.GetName() == key.Name {
			object, found = listed, true
		}
		return nil
	})
	if accessor, ok := list.(metav1.ListMetaAccessor); ok {
		version = accessor.GetListMeta().GetResourceVersion()
	}
	return object, found, version, err
}

// skip counts a write that was not needed.
func (r *resource[T]) skip(subresources ...string) { r.writes.Skip(r.inMetrics(subresources...)) }

// inMetrics returns the name of the resource in metrics and logs.
func (r *resource[T]) inMetrics(subresources ...string) string {
	name := r.name.GroupResource()
	name.Resource = path.Join(append([]string{name.Resource}, subresources...)...)
	return name.String()
}

// late returns a conflict error, for a cause which shows that the cache is stale.
func (r *resource[T]) late(key cache.ObjectName, cause error) error {
	return apierrors.NewConflict(r.name.GroupResource(), key.Name, cause)
}
