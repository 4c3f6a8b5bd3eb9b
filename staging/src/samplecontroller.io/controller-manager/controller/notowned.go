// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// notOwnedRetry is the delay before retrying if an object has another owner. The deletion of
// that object does not enqueue the reconciled one.
const notOwnedRetry = time.Minute

// collectedWithin is how soon the garbage collector usually deletes the objects of a deleted owner.
const collectedWithin = time.Minute

// referenceOf returns the controller reference of an object if it is to an object of the kind, in any
// version, else nil.
func (b *Builder[T]) referenceOf(object metav1.Object) *metav1.OwnerReference {
	reference := metav1.GetControllerOfNoCopy(object)
	if reference == nil || reference.Kind != b.resource.kind.Kind {
		return nil
	}
	if version, err := schema.ParseGroupVersion(reference.APIVersion); err != nil ||
		version.Group != b.resource.kind.Group {
		return nil
	}
	return reference
}

// owns reports whether the reconciled object is the controller of object. If the reconciled object is
// gone, only its name is compared.
func (o *Owned[T, P]) owns(r *Request[P], object T) bool {
	if r.found {
		return metav1.IsControlledBy(object, r.object)
	}
	reference := o.owner.referenceOf(object)
	return reference != nil && reference.Name == r.key.Name
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
	if reference := o.owner.referenceOf(object); reference != nil && reference.Name == r.key.Name {
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
