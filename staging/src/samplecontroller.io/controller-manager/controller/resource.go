// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/tolerant"
)

// Object is an API object. T is a pointer to a struct, such as *corev1.ConfigMap.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// Option determines which objects of a kind a controller reads, and from where.
type Option func(*kindOptions)

type kindOptions struct {
	selector string
	resource string
}

// Selector restricts the objects to those that match a label selector. An object that no
// longer matches counts as deleted. All controllers of a program that read the kind must use
// the same selector.
func Selector(labels string) Option { return func(o *kindOptions) { o.selector = labels } }

// Resource sets the plural of the kind as in its URL. It is needed only for irregular plurals,
// such as "gateways" of Gateway.
func Resource(plural string) Option { return func(o *kindOptions) { o.resource = plural } }

// resource reads and writes the objects of one namespaced kind.
type resource[T Object] struct {
	kind     schema.GroupVersionKind
	name     schema.GroupVersionResource
	selector labels.Selector
	informer cache.TypedSharedIndexInformer[T]
	client   func(namespace string) *gentype.ClientWithList[T, runtime.Object]
	manager  string
}

// newResource returns a resource that reads from the shared informer of the kind and writes as
// the controller of the context.
func newResource[T Object](c *Context, opts []Option) (*resource[T], error) {
	var o kindOptions
	for _, opt := range opts {
		opt(&o)
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid selector %q of %v: %w", c.name, o.selector, reflect.TypeFor[T](), err)
	}
	scheme := c.process.Scheme
	kinds, _, err := scheme.ObjectKinds(newOf[T]())
	if err != nil {
		return nil, fmt.Errorf("%s reads %v, which is not registered in the scheme: add it in Program.Scheme: %w", c.name, reflect.TypeFor[T](), err)
	}
	kind := kinds[0]
	name, _ := meta.UnsafeGuessKindToResource(kind)
	if o.resource != "" {
		name.Resource = o.resource
	}
	reader, err := tolerant.ClientFor[T, runtime.Object](c.ReadConfig(), scheme, name)
	if err != nil {
		return nil, fmt.Errorf("%s reads %v, with Program.Scheme: %w", c.name, reflect.TypeFor[T](), err)
	}
	writer, err := tolerant.ClientFor[T, runtime.Object](c.ClientConfig(), scheme, name)
	if err != nil {
		return nil, err
	}
	informer := informers.InformerFor[T](c.Informers(), name, reader(c.Namespace()), informers.WithSelector(o.selector))
	return &resource[T]{kind: kind, name: name, selector: selector, informer: informer, client: writer, manager: c.name}, nil
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

// live returns the object from the API server, whether or not the selector matches it. It lists
// one object instead of getting it, because the informer needs the permission to list anyway.
func (r *resource[T]) live(ctx context.Context, key cache.ObjectName) (object T, found bool, err error) {
	list, err := r.client(key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
	})
	if err != nil {
		return object, false, fmt.Errorf("reading %s %s: %w", r.kind.Kind, key, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if listed, ok := item.(T); ok && listed.GetName() == key.Name {
			object, found = listed, true
		}
		return nil
	})
	return object, found, err
}

// patch writes the difference between before, the cached object, and after. It fails with a
// conflict if the resourceVersion is no longer that of before.
func (r *resource[T]) patch(ctx context.Context, before, after T, subresources ...string) (T, error) {
	patch, patchType, err := r.difference(before, after)
	if err != nil {
		return before, fmt.Errorf("comparing %s %s: %w", r.kind.Kind, cache.MetaObjectToName(before), err)
	}
	patched, err := r.client(before.GetNamespace()).Patch(ctx, before.GetName(), patchType, patch, metav1.PatchOptions{FieldManager: r.manager}, subresources...)
	if err != nil {
		return before, fmt.Errorf("patching %s %s: %w", r.kind.Kind, cache.MetaObjectToName(before), err)
	}
	klog.FromContext(ctx).V(2).Info("Patched object", "resource", r.inMetrics(subresources...), "object", klog.KObj(before))
	return patched, nil
}

// difference returns a patch from before to after, with the resourceVersion of before. An
// update would delete fields that the cache or this version of the type lacks.
func (r *resource[T]) difference(before, after T) ([]byte, types.PatchType, error) {
	base, _ := before.DeepCopyObject().(T)
	base.SetResourceVersion("") // so that the patch has it
	after.SetResourceVersion(before.GetResourceVersion())
	from, err := json.Marshal(base)
	if err != nil {
		return nil, "", err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, "", err
	}
	if tolerant.IsBuiltIn[T]() {
		patch, err := strategicpatch.CreateTwoWayMergePatch(from, to, after)
		return patch, types.StrategicMergePatchType, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
	return patch, types.MergePatchType, err
}

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
