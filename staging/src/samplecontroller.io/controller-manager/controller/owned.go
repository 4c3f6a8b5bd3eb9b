// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// notOwnedRetry is the delay before retrying if an object has another owner. The deletion of
// that object does not enqueue the reconciled one.
const notOwnedRetry = time.Minute

// collectedWithin is how soon the garbage collector usually deletes the objects of a deleted owner.
const collectedWithin = time.Minute

// Owned is a kind whose objects are owned by objects of another kind. Make it with [Owns].
type Owned[T, P Object] struct {
	owner    *Builder[P]
	resource *resource[T]
}

// Owns makes the controller of kind own objects of type T, in the namespaces of their owners.
// Changes of an object enqueue its owner, which its controller reference names.
func Owns[T, P Object](kind *Builder[P], opts ...Option) *Owned[T, P] {
	o := &Owned[T, P]{owner: kind}
	resource, err := newResource[T](kind.context, opts)
	if err != nil {
		kind.errs = append(kind.errs, err)
	}
	if len(kind.errs) > 0 {
		return o
	}
	o.resource = resource
	kind.watches = append(kind.watches, func(l *reconcile.Loop) {
		reconcile.Watch(l, resource.informer, func(object T) []cache.ObjectName {
			reference := metav1.GetControllerOfNoCopy(object)
			if reference == nil || !kind.isOf(reference) {
				return nil
			}
			return []cache.ObjectName{cache.NewObjectName(object.GetNamespace(), reference.Name)}
		})
	})
	return o
}

// isOf returns whether the reference is to an object of the kind, in any version.
func (k *Builder[T]) isOf(reference *metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && version.Group == k.resource.kind.Group && reference.Kind == k.resource.kind.Kind
}

// Get returns a copy of the cached object with that name. ok is false if there is none that
// the reconciled object owns, or if it cannot be decoded, so that its spec is unknown.
func (o *Owned[T, P]) Get(r *Request[P], name string) (object T, ok bool) {
	cached, found, err := o.resource.cached(cache.NewObjectName(r.key.Namespace, name))
	if err != nil || !found || !o.owns(r, cached) || tolerant.DecodeError(cached) != nil {
		return object, false
	}
	return cached.DeepCopyObject().(T), true
}

// owns returns whether the reconciled object is the controller of object. If the reconciled object is
// gone, only its name is compared.
func (o *Owned[T, P]) owns(r *Request[P], object T) bool {
	if r.found {
		return metav1.IsControlledBy(object, r.object)
	}
	reference := metav1.GetControllerOfNoCopy(object)
	return reference != nil && o.owner.isOf(reference) && reference.Name == r.key.Name
}

// Ensure makes the reconciled object own an object with that name and with the fields that mutate
// sets. If there is none, Ensure creates it. Otherwise mutate gets a copy of the cached
// object, and Ensure patches the changes with the cached resourceVersion. If nothing changes,
// it writes nothing. mutate must set only the fields that the controller determines, and leave
// others unchanged, such as defaults and fields of other managers.
//
// Fields that T does not know are kept, also in elements of lists. Such an element is found by what
// identifies it in the lists of Kubernetes, such as its name, type, or port and protocol. Unknown
// fields are lost in a changed element without a unique identity, in an object of a custom resource
// whose known fields are all zero, and in all elements of a list that is set as a whole: one with two
// equal elements, or with more than 1,000 operations to change it.
//
// Ensure returns the object as last known from the API server. If an object with that name
// exists but is not owned by the reconciled object, or does not match the selector, Ensure leaves it
// unchanged and returns a [UserError]. If an earlier owner of the same name had the object, Ensure
// first waits for the garbage collector, for a minute after the reconciled object was created.
func (o *Owned[T, P]) Ensure(ctx context.Context, r *Request[P], name string, mutate func(T)) (T, error) {
	key := cache.NewObjectName(r.key.Namespace, name)
	var none T
	if !r.found {
		return none, fmt.Errorf("%s %s does not exist and cannot own objects: call Ensure only if Object returns true", o.owner.resource.kind.Kind, r.key)
	}
	if r.key.Namespace == "" {
		return none, fmt.Errorf("%s %s has no namespace, so none is known for %s %s: Owns does not support cluster-scoped owners, use Context.Loop",
			o.owner.resource.kind.Kind, r.key, o.resource.kind.Kind, name)
	}
	cached, found, err := o.resource.cached(key)
	if err != nil {
		return none, fmt.Errorf("reading %s %s from the cache: %w", o.resource.kind.Kind, key, err)
	}
	if !found {
		return o.create(ctx, r, key, mutate)
	}
	if !o.owns(r, cached) {
		return none, o.notOwned(ctx, r, cached)
	}
	if err := tolerant.DecodeError(cached); err != nil {
		return none, &userError{reason: tolerant.ReasonUndecodable, err: fmt.Errorf("%s %s cannot be decoded and is left unchanged: %w", o.resource.kind.Kind, key, err)}
	}
	wanted := cached.DeepCopyObject().(T)
	if cached.GetDeletionTimestamp() != nil {
		return wanted, nil // its deletion enqueues the owner
	}
	mutate(wanted)
	if equality.Semantic.DeepEqual(cached, wanted) {
		o.resource.skip()
		return wanted, nil
	}
	patched, err := o.resource.patch(ctx, cached, wanted)
	return patched, o.note(r, cached, patched, err)
}

// create creates the object.
func (o *Owned[T, P]) create(ctx context.Context, r *Request[P], key cache.ObjectName, mutate func(T)) (T, error) {
	object := newOf[T]()
	mutate(object)
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(r.object, o.owner.resource.kind)})
	if !o.resource.selector.Matches(labels.Set(object.GetLabels())) {
		return object, fmt.Errorf("creating %s %s: it does not match the selector of Owns, %s: set its labels in mutate", o.resource.kind.Kind, key, o.resource.selector)
	}
	created, err := o.resource.client(key.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: o.resource.manager})
	if apierrors.IsAlreadyExists(err) {
		// Its owner is known once the cache contains it.
		live, found, readErr := o.resource.live(ctx, key)
		if readErr != nil {
			return object, readErr
		}
		if found && !o.resource.selector.Matches(labels.Set(live.GetLabels())) { // the cache will never contain it
			return object, o.notSelected(key)
		}
		if found {
			o.owner.consistency.WroteAt(r.key, o.resource.informer.GetStore(), live.GetResourceVersion())
		}
		return object, o.resource.late(key, err)
	}
	if err != nil {
		return object, fmt.Errorf("creating %s %s: %w", o.resource.kind.Kind, key, err)
	}
	klog.FromContext(ctx).V(2).Info("Created object", "resource", o.resource.inMetrics(), "object", klog.KObj(created))
	return created, o.note(r, created, created, nil)
}

// notSelected returns the error for an object that has the name but not the labels.
func (o *Owned[T, P]) notSelected(key cache.ObjectName) error {
	return &userError{
		reason: "NotSelected", again: notOwnedRetry,
		err: fmt.Errorf("%s %s exists, but does not match the selector of Owns, %s: delete, rename or label it", o.resource.kind.Kind, key, o.resource.selector),
	}
}

// notOwned returns the error for an object that has the name but another owner.
func (o *Owned[T, P]) notOwned(ctx context.Context, r *Request[P], object T) error {
	name, owner := cache.MetaObjectToName(object), o.owner.resource.kind.Kind
	if reference := metav1.GetControllerOfNoCopy(object); reference != nil && o.owner.isOf(reference) && reference.Name == r.key.Name {
		return o.notCollected(ctx, r, object)
	}
	return &userError{
		reason: "NotOwned", again: notOwnedRetry,
		err: fmt.Errorf("%s %s exists and is not owned by %s %s: delete or rename one of them", o.resource.kind.Kind, name, owner, r.key),
	}
}

// notCollected returns the error for an object whose owner was deleted, and had the name of the
// reconciled object. Usually the garbage collector deletes it soon, which enqueues the reconciled object.
func (o *Owned[T, P]) notCollected(ctx context.Context, r *Request[P], object T) error {
	name, owner := cache.MetaObjectToName(object), o.owner.resource.kind.Kind
	what := fmt.Sprintf("%s %s belongs to an earlier %s %s", o.resource.kind.Kind, name, owner, r.key)
	// The earlier owner was gone when the reconciled object was created.
	age := time.Since(r.object.GetCreationTimestamp().Time)
	if age < collectedWithin {
		return &userError{
			again: collectedWithin - max(age, 0),
			err:   errors.New(what + " and is about to be deleted"),
		}
	}
	live, found, err := o.owner.resource.live(ctx, r.key)
	if err != nil {
		return err
	}
	if !found || live.GetUID() != r.object.GetUID() { // the cached owner is the earlier one
		if found {
			o.owner.consistency.WroteAt(r.key, o.owner.resource.informer.GetStore(), live.GetResourceVersion())
		}
		return o.owner.resource.late(r.key, errors.New("it was deleted or created again"))
	}
	resource := o.resource.name.GroupResource()
	command := fmt.Sprintf("kubectl -n %s %%s %s %s", name.Namespace, resource, name.Name)
	cause := "the garbage collector has not deleted it: delete it with " + fmt.Sprintf(command, "delete")
	if object.GetDeletionTimestamp() != nil {
		cause = fmt.Sprintf("its deletion waits for the finalizers %s: fix what removes them, or remove them with %s",
			strings.Join(object.GetFinalizers(), ", "), fmt.Sprintf(command, "edit"))
	}
	return &userError{reason: "NotCollected", again: notOwnedRetry, err: fmt.Errorf("%s, but %s", what, cause)}
}

// Delete deletes the object with that name if the reconciled object owns it. If the cache lacks
// the reconciled object, Delete first checks with the API server that it is gone.
func (o *Owned[T, P]) Delete(ctx context.Context, r *Request[P], name string) error {
	key := cache.NewObjectName(r.key.Namespace, name)
	cached, found, err := o.resource.cached(key)
	if err != nil {
		return fmt.Errorf("reading %s %s from the cache: %w", o.resource.kind.Kind, key, err)
	}
	if !found || !o.owns(r, cached) || cached.GetDeletionTimestamp() != nil {
		return nil
	}
	if !r.found {
		live, found, err := o.owner.resource.live(ctx, r.key)
		if err != nil {
			return err
		}
		if found && o.owner.resource.selector.Matches(labels.Set(live.GetLabels())) {
			o.owner.consistency.WroteAt(r.key, o.owner.resource.informer.GetStore(), live.GetResourceVersion())
			return o.owner.resource.late(r.key, errors.New("it still exists"))
		}
	}
	uid, version := cached.GetUID(), cached.GetResourceVersion()
	err = o.resource.client(key.Namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		o.owner.consistency.Conflicted(r.key, o.resource.informer.GetStore(), cached)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", o.resource.kind.Kind, key, err)
	}
	klog.FromContext(ctx).V(2).Info("Deleted object", "resource", o.resource.inMetrics(), "object", klog.KObj(cached))
	return nil
}

// note remembers which version of the written object the cache must reach.
func (o *Owned[T, P]) note(r *Request[P], cached, written T, err error) error {
	store := o.resource.informer.GetStore()
	if apierrors.IsNotFound(err) {
		err = o.resource.late(cache.MetaObjectToName(cached), err)
	}
	if apierrors.IsConflict(err) {
		o.owner.consistency.Conflicted(r.key, store, cached)
	} else if err == nil {
		o.owner.consistency.WroteAt(r.key, store, written.GetResourceVersion())
	}
	return err
}
