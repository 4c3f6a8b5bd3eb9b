// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"
)

// Object is an API object. T is a pointer to a struct, such as *corev1.ConfigMap.
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
	madeBy   []string // field managers: see MadeBy
	// informerWith returns the informer again, with more options.
	informerWith func(...informers.Option) cache.TypedSharedIndexInformer[T]
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
		if r.client, err = tolerant.ClientFor[T, runtime.Object](c.ClientConfig(), c.process.Scheme, r.name); err != nil {
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
		kind: kind, name: name, selector: selector, manager: c.name, writes: c.Writes(),
		cluster: o.cluster, use: use, queue: o.queue, madeBy: o.madeBy,
		note: func(text string) { c.process.note(c.name, text) },
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
	reader, err := tolerant.ClientFor[T, runtime.Object](c.ReadConfig(), c.process.Scheme, r.name)
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
func (r *resource[T]) liveAt(ctx context.Context, key cache.ObjectName) (object T, found bool, version string, err error) {
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

// versionPath is the path of the resourceVersion.
const versionPath = "/metadata/resourceVersion"

// writing returns the write of an object, which is to be sent with [Request.try].
func (r *resource[T]) writing(verb string, object cache.ObjectName, contents any, subresources ...string) sentWrite {
	name := r.inMetrics(subresources...)
	w := write{verb: verb, kind: r.kind.Kind, resource: name, object: object, status: len(subresources) > 0}
	return sentWrite{write: w, contents: contents}
}

// patch writes the difference between before, the cached object, and after. It fails with a
// conflict if the stored object is not as in the cache: if it has another resourceVersion, or if the
// patch does not apply, for example because an element of a list is not where it is in the cache. It
// passes the write to try, which may send it.
func (r *resource[T]) patch(ctx context.Context, try tryFunc, before, after T, subresources ...string) (T, error) {
	name := cache.MetaObjectToName(before)
	operations, err := r.difference(before, after)
	if err != nil {
		return before, fmt.Errorf("comparing %s %s: %w", r.kind.Kind, name, err)
	}
	if len(operations) == 0 { // such as times that differ by less than a second
		r.skip(subresources...)
		return before, nil
	}
	w, patched := r.writing("patch", name, operations, subresources...), before
	w.fields = strings.Join(fieldsOf(operations), " ")
	w.send = func(ctx context.Context) error {
		patched, err = r.sendPatch(ctx, before, operations, subresources)
		return err
	}
	err = try(ctx, w)
	return patched, err
}

// sendPatch sends a patch of before.
func (r *resource[T]) sendPatch(ctx context.Context, before T, operations []operation, subresources []string) (T, error) {
	name := cache.MetaObjectToName(before)
	operations = append(slices.Clip(operations), operation{Op: "replace", Path: versionPath, Value: before.GetResourceVersion()})
	patch, err := json.Marshal(operations)
	if err != nil {
		return before, fmt.Errorf("comparing %s %s: %w", r.kind.Kind, name, err)
	}
	patched, err := r.client(name.Namespace).Patch(ctx, name.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: r.manager}, subresources...)
	if doesNotApply(err) {
		err = r.late(name, errors.New("the stored object is not as in the cache"))
	}
	if err != nil {
		return before, fmt.Errorf("patching %s %s: %w", r.kind.Kind, name, err)
	}
	// An object in deletion is gone with its last finalizer, and keeps its version.
	if patched.GetResourceVersion() == before.GetResourceVersion() && before.GetDeletionTimestamp() == nil {
		r.changedNothing(ctx, before, operations, subresources)
		return patched, nil
	}
	klog.FromContext(ctx).V(2).Info("Patched object", "resource", r.inMetrics(subresources...), "object", klog.KObj(before))
	return patched, nil
}

// changedNothing counts a patch that had no effect, and logs the first one of the controller for the
// resource. The cause is a function that sets fields to values which the API server replaces. It sends
// such a patch at each call.
func (r *resource[T]) changedNothing(ctx context.Context, cached T, operations []operation, subresources []string) {
	r.writes.NoOp(r.inMetrics(subresources...))
	if !r.noted.CompareAndSwap(false, true) {
		return
	}
	paths := fieldsOf(operations)
	r.note(fmt.Sprintf("a patch of %s %s changed nothing: the API server sets %s to other values, such as "+
		"defaults: set only the fields that the controller determines",
		r.kind.Kind, cache.MetaObjectToName(cached), strings.Join(paths, ", ")))
	klog.FromContext(ctx).Info("A patch changed nothing: the API server sets these fields to other values, such as defaults. Set only the fields that the controller determines. Later ones are only counted",
		"resource", r.inMetrics(subresources...), "object", klog.KObj(cached), "paths", paths)
}

// delete deletes an object, if it is still the cached version.
func (r *resource[T]) delete(ctx context.Context, cached T) error {
	name, uid, version := cache.MetaObjectToName(cached), cached.GetUID(), cached.GetResourceVersion()
	err := r.client(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", r.kind.Kind, name, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted object", "resource", r.inMetrics(), "object", klog.KObj(cached))
	return nil
}

// difference returns the JSON patch from before to after. An update would delete fields that the
// cache or this version of the type lacks, a merge patch those in elements of lists. The merge
// keys of strategic merge patches are not unique: those of ports lack the protocol.
func (r *resource[T]) difference(before, after T) ([]operation, error) {
	from, err := documentOf(before)
	if err != nil {
		return nil, err
	}
	to, err := documentOf(after)
	if err != nil {
		return nil, err
	}
	d := differ{sparse: r.sparse}
	d.members("", from, to)
	return d.ops, nil
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
