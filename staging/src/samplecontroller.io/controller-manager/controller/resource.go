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
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/gentype"
	restclient "k8s.io/client-go/rest"
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
	builtIn  bool
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
	for _, needed := range []string{kind.Kind + "List", "ListOptions"} {
		if !scheme.Recognizes(kind.GroupVersion().WithKind(needed)) {
			return nil, fmt.Errorf("%s reads %v, but %s of %v is not registered in the scheme: add it in Program.Scheme, with AddKnownTypes and metav1.AddToGroupVersion", c.name, reflect.TypeFor[T](), needed, kind.GroupVersion())
		}
	}
	name, _ := meta.UnsafeGuessKindToResource(kind)
	if o.resource != "" {
		name.Resource = o.resource
	}
	// Only built-in types have a protobuf encoding.
	_, builtIn := any(newOf[T]()).(interface{ Unmarshal(data []byte) error })
	reader, err := clientOf[T](c.ReadConfig(), scheme, kind, name, builtIn)
	if err != nil {
		return nil, err
	}
	writer, err := clientOf[T](c.ClientConfig(), scheme, kind, name, builtIn)
	if err != nil {
		return nil, err
	}
	informer := informers.InformerFor[T](c.Informers(), name, reader(c.Namespace()), informers.WithSelector(o.selector))
	return &resource[T]{kind: kind, name: name, selector: selector, informer: informer, client: writer, manager: c.name, builtIn: builtIn}, nil
}

func newOf[T any]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}

// clientOf returns a function that returns the client of a kind in a namespace.
func clientOf[T Object](config *restclient.Config, scheme *runtime.Scheme, kind schema.GroupVersionKind, name schema.GroupVersionResource, builtIn bool) (func(namespace string) *gentype.ClientWithList[T, runtime.Object], error) {
	version := kind.GroupVersion()
	var client restclient.Interface
	var err error
	if builtIn {
		config.GroupVersion, config.APIPath = &version, "/apis"
		if version.Group == "" {
			config.APIPath = "/api"
		}
		config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		client, err = restclient.RESTClientFor(config)
	} else {
		client, err = tolerant.RESTClientFor(config, version, scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("making a client for %v: %w", name, err)
	}
	codec := runtime.NewParameterCodec(scheme)
	newList := func() runtime.Object {
		list, _ := scheme.New(version.WithKind(kind.Kind + "List")) // newResource has checked that it is registered
		return list
	}
	return func(namespace string) *gentype.ClientWithList[T, runtime.Object] {
		return gentype.NewClientWithList(name.Resource, client, codec, namespace, newOf[T], newList)
	}, nil
}

// cached returns the object from the cache.
func (r *resource[T]) cached(key cache.ObjectName) (object T, found bool, err error) {
	cached, found, err := r.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !found {
		return object, false, err
	}
	return cached.(T), true, nil
}

// live returns the object from the API server. It lists one object instead of getting it,
// because the informer needs the permission to list anyway.
func (r *resource[T]) live(ctx context.Context, key cache.ObjectName) (object T, found bool, err error) {
	list, err := r.client(key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(), LabelSelector: r.selector.String(),
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
	from, err := json.Marshal(before)
	if err != nil {
		return nil, "", err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, "", err
	}
	var patch []byte
	patchType := types.MergePatchType
	if r.builtIn {
		patchType = types.StrategicMergePatchType
		patch, err = strategicpatch.CreateTwoWayMergePatch(from, to, after)
	} else {
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
	}
	if err != nil {
		return nil, "", err
	}
	changes := map[string]any{}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, "", err
	}
	metadata, ok := changes["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		changes["metadata"] = metadata
	}
	metadata["resourceVersion"] = before.GetResourceVersion()
	patch, err = json.Marshal(changes)
	return patch, patchType, err
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
