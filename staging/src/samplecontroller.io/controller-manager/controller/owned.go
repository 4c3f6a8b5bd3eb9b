// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Owned is a kind whose objects are owned by objects of another kind. Make it with [Owns].
//
// Another program may make an object and set its controller reference to an object of this controller.
// [Owned.Get] and [Owned.List] return it, too. Nothing is done to it, unless its name is asked for:
// [Owned.Ensure] takes over an object with that name, so that an object can be adopted by its controller
// reference, and makes no second one. [Owned.Delete] deletes only what the controller itself has written.
type Owned[T, P Object] struct {
	owner     *Builder[P]
	resource  *resource[T]
	namespace string // for an owner without namespace
	contests  contests
	describe  func(P, T, Failure) (reason, message string) // see DescribeContests
}

// Owns makes the controller of kind own objects of type T, in the namespaces of their owners; for
// owners without a namespace see [Owned.In]. Changes of an object enqueue its owner, which its
// controller reference names. A kind can own another kind by one call of Owns.
func Owns[T, P Object](kind *Builder[P], opts ...Option) *Owned[T, P] {
	o := &Owned[T, P]{owner: kind, contests: newContests()}
	kind.declares("Owns", true)
	resource, err := newResource[T](kind.context, "Owns", opts)
	kind.fail(err)
	if len(kind.errs) > 0 {
		return o
	}
	o.resource = resource
	if resource.client == nil {
		kind.fail(misuse.Errorf("%s: Owns writes whole objects: read metadata with Watch or Refers", kind.context.name))
		return o
	}
	if resource.cluster && !kind.resource.cluster {
		kind.fail(misuse.Errorf("%s: a %s has a namespace, so it cannot own a %s, which has none: the garbage collector would delete it",
			kind.context.name, kind.resource.kind.Kind, resource.kind.Kind))
		return o
	}
	if !kind.once("Owns", resource.name, "and use what it returns") {
		return o
	}
	kind.context.declare(resource.name.GroupResource(), "create", "patch")
	kind.context.declare(subresource(kind.resource.name.GroupResource(), "finalizers"), "update")
	resource.informerWith(informers.WithIndex(o.index(), o.owners))
	kind.watches = append(kind.watches, func(l *reconcile.Loop) {
		reconcile.Watch(l, resource.informer, inScope(kind, resource, func(object T) []cache.ObjectName {
			reference := kind.referenceOf(object)
			if reference == nil {
				return nil
			}
			return []cache.ObjectName{kind.resource.keyIn(object.GetNamespace(), reference.Name)}
		}))
	})
	return o
}

// In returns the owned kind in a namespace, for owners of a [ClusterScoped] kind. Objects with a
// namespace own objects in their own namespace only: methods panic for another one, so that the object
// that is reconciled fails.
func (o *Owned[T, P]) In(namespace string) *Owned[T, P] {
	in := *o
	in.namespace = namespace
	return &in
}

// key returns the key of the owned object with that name. It panics if the namespace is unknown.
func (o *Owned[T, P]) key(r *Request[P], name string) cache.ObjectName {
	namespace := r.key.Namespace
	if o.namespace != "" {
		namespace = o.namespace
	}
	switch {
	case o.resource.cluster:
	case namespace == "":
		panic(misuse.Errorf("%s %s has no namespace, so none is known for %s %s: call Owned.In(namespace) first",
			o.owner.resource.kind.Kind, r.key, o.resource.kind.Kind, name))
	case r.key.Namespace != "" && namespace != r.key.Namespace:
		panic(misuse.Errorf("%s %s cannot own %s %s/%s in another namespace: the garbage collector would delete it",
			o.owner.resource.kind.Kind, r.key, o.resource.kind.Kind, namespace, name))
	}
	return o.resource.keyIn(namespace, name)
}

// Get returns a copy of the cached object with that name. ok is false if there is none that
// the reconciled object owns, or if it cannot be decoded, so that its spec is unknown.
func (o *Owned[T, P]) Get(r *Request[P], name string) (object T, ok bool) {
	cached, found, err := o.resource.cached(o.key(r, name))
	if err != nil || !found || !o.owns(r, cached) || tolerant.DecodeError(cached) != nil {
		return object, false
	}
	o.note(r, cached)
	return cached.DeepCopyObject().(T), true
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
// A patch that sets a field which the API server does not know, such as one that an older CRD lacks, fails
// with a [Failure] as a whole; a creation loses the field, and the next call fails.
//
// A field that another writer keeps setting, or that admission changes, is left out of the patch for some time.
// Ensure returns no error for it. A [Failure] reports it: see [Owned.Contest].
//
// Ensure returns the object as last known from the API server. One that is being deleted is returned
// unchanged; its deletion enqueues the reconciled object. If an object with that name
// exists but is not owned by the reconciled object, does not match the selector, or cannot be decoded,
// Ensure leaves it unchanged and returns a [UserError]. If an earlier owner of the same name had the object, Ensure
// first waits for the garbage collector, for a minute after the reconciled object was created.
//
// Ensure writes nothing and returns an error if the reconciled object is gone or is being deleted. It
// does the same if mutate changes the field Status: the API server would ignore the change, because a
// status is written only by its subresource.
func (o *Owned[T, P]) Ensure(ctx context.Context, r *Request[P], name string, mutate func(T)) (T, error) {
	key := o.key(r, name)
	var none T
	if err := r.writable(); err != nil {
		return none, err
	}
	switch {
	case !r.found:
		return none, fmt.Errorf("%s %s does not exist and cannot own objects: call Ensure only if Object returns true", o.owner.resource.kind.Kind, r.key)
	case r.object.GetDeletionTimestamp() != nil:
		return none, fmt.Errorf("%s %s is being deleted and cannot own objects: do not call Ensure for it", o.owner.resource.kind.Kind, r.key)
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
	o.note(r, cached)
	wanted := cached.DeepCopyObject().(T)
	if cached.GetDeletionTimestamp() != nil {
		return wanted, nil // its deletion enqueues the owner
	}
	mutate(wanted)
	return o.patch(ctx, r, cached, wanted)
}

// Patch writes the fields of object that differ from the cached ones, with the cached resourceVersion. object
// is a copy that [Owned.Get] or [Owned.List] returned, of any namespace, and its changes are written as by
// [Owned.Ensure]. Use it to change an object only if it exists. Patch returns the object as last known from the
// API server. If the cache has another version of the object by now, Patch returns a conflict: return it, and
// the function is called again. An object that the reconciled object does not own is an error.
func (o *Owned[T, P]) Patch(ctx context.Context, r *Request[P], object T) (none T, _ error) {
	if err := r.writable(); err != nil {
		return none, err
	}
	key := o.In(object.GetNamespace()).key(r, object.GetName())
	cached, found, err := o.resource.cached(key)
	if err != nil {
		return none, fmt.Errorf("reading %s %s from the cache: %w", o.resource.kind.Kind, key, err)
	}
	if !found || cached.GetUID() != object.GetUID() || cached.GetResourceVersion() != object.GetResourceVersion() {
		return none, r.isStale(o.resource.late(key, errors.New("it has changed since it was read from the cache")))
	}
	if !r.found || !metav1.IsControlledBy(cached, r.object) {
		return none, fmt.Errorf("patching %s %s: %s %s does not own it: patch only what Get or List returns",
			o.resource.kind.Kind, key, o.owner.resource.kind.Kind, r.key)
	}
	return o.patch(ctx, r, cached, object)
}

// create creates the object.
func (o *Owned[T, P]) create(ctx context.Context, r *Request[P], key cache.ObjectName, mutate func(T)) (T, error) {
	object := newOf[T]()
	mutate(object)
	if err := o.keepsStatus(newOf[T](), object, key); err != nil {
		return object, err
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(r.object, o.owner.resource.kind)})
	if !o.resource.selector.Matches(labels.Set(object.GetLabels())) {
		return object, fmt.Errorf("creating %s %s: it does not match the selector of Owns, %s: set its labels in mutate", o.resource.kind.Kind, key, o.resource.selector)
	}
	w := o.resource.writing("create", key, object)
	if c := &o.owner.confirmations; !c.has(r.key, r.object.GetUID()) || c.mayHaveHad(r.object.GetUID(), o.dependent(key)) {
		w.confirm = func(ctx context.Context) error { return r.isStale(o.owner.confirm(ctx, r)) }
	}
	w.send = func(ctx context.Context) (err error) {
		object, err = o.sendCreate(ctx, r, key, object)
		return err
	}
	err := r.try(ctx, w)
	return object, err
}

// sendCreate creates the object.
func (o *Owned[T, P]) sendCreate(ctx context.Context, r *Request[P], key cache.ObjectName, object T) (T, error) {
	created, err := o.resource.client(key.Namespace).Create(ctx, object,
		metav1.CreateOptions{FieldManager: o.resource.manager})
	store := o.resource.informer.GetStore()
	if isTaken(err) {
		// Its owner is known once the cache contains it.
		live, found, readErr := o.resource.live(ctx, key)
		if readErr != nil {
			return object, readErr
		}
		if found && !o.resource.selector.Matches(labels.Set(live.GetLabels())) { // the cache will never contain it
			return object, o.notSelected(key)
		}
		if found {
			o.owner.consistency.WroteAt(r.key, store, live.GetResourceVersion())
		}
		return object, r.isStale(o.resource.late(key, err))
	}
	if err != nil {
		return object, fmt.Errorf("creating %s %s: %w", o.resource.kind.Kind, key, o.resource.hint(err))
	}
	o.owner.confirmations.note(r.object.GetUID(), o.dependent(key))
	o.owner.consistency.WroteAt(r.key, store, created.GetResourceVersion())
	klog.FromContext(ctx).V(2).Info("Created object", "resource", o.resource.inMetrics(), "object", klog.KObj(created))
	return created, nil
}

// keepsStatus returns an error if mutate has changed the status. The API server would drop the change
// without an error, and each call would send it again.
func (o *Owned[T, P]) keepsStatus(before, after T, key cache.ObjectName) error {
	from, to := statusOf(before), statusOf(after)
	if !from.IsValid() || same(from.Interface(), to.Interface()) {
		return nil
	}
	kind := o.resource.kind.Kind
	return fmt.Errorf("ensuring %s %s: mutate has changed its status, which Ensure cannot write: leave it to the "+
		"controller that reconciles the %s", kind, key, kind)
}

// failed handles the error of a patch of the cached object.
func (o *Owned[T, P]) failed(r *Request[P], cached T, err error) error {
	if isGone(err) {
		err = o.resource.late(cache.MetaObjectToName(cached), err)
	}
	if isConflict(err) {
		o.owner.consistency.Conflicted(r.key, o.resource.informer.GetStore(), cached)
	}
	return r.isStale(err)
}

// isStale returns an error, and remembers it if it shows that a cache is stale.
func (r *Request[T]) isStale(err error) error {
	if isConflict(err) || errors.Is(err, reconcile.ErrStale) {
		r.stale = err
	}
	return err
}
