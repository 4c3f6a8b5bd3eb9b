// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// sooner returns the shorter of two delays. 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Request is one call of the function of a controller, for one object. It must not be used after the
// call.
type Request[T Object] struct {
	builder *Builder[T]
	key     cache.ObjectName
	object  T // as cached
	found   bool
	after   time.Duration
}

// Key returns the namespace and name of the object.
func (r *Request[T]) Key() cache.ObjectName { return r.key }

// Object returns a copy of the cached object. ok is false if there is none, or if the selector
// no longer matches it.
func (r *Request[T]) Object() (object T, ok bool) {
	if !r.found {
		return object, false
	}
	return r.object.DeepCopyObject().(T), true
}

// RequeueAfter reconciles the object again after d, if this call returns nil. If it is called several
// times, the shortest delay counts.
func (r *Request[T]) RequeueAfter(d time.Duration) { r.after = sooner(r.after, d) }

// Event records an Event about the object, if it exists. eventType is corev1.EventTypeNormal
// or corev1.EventTypeWarning. Call it only when something has happened: an Event in each call
// has no value.
func (r *Request[T]) Event(eventType, reason, format string, args ...any) {
	if r.found {
		r.builder.recorder.Eventf(r.object, eventType, reason, format, args...)
	}
}

// UpdateStatus writes the Status field of object, a copy returned by [Request.Object], if it
// differs from the cached one. It sends a JSON patch of the fields that differ to the status
// subresource, with the cached resourceVersion. It writes nothing if nothing differs, or if the
// object is gone. It returns an error if the metadata differs, because it cannot write that.
func (r *Request[T]) UpdateStatus(ctx context.Context, object T) error {
	if !r.found {
		return nil
	}
	b := r.builder
	if !equality.Semantic.DeepEqual(metadataOf(object), metadataOf(r.object)) {
		return fmt.Errorf("updating the status of %s %s: its metadata has been changed, which is not part of the status: change a copy that is not passed to UpdateStatus", b.resource.kind.Kind, r.key)
	}
	wanted := r.object.DeepCopyObject().(T)
	from, to := statusOf(object), statusOf(wanted)
	if !from.IsValid() {
		return fmt.Errorf("updating the status of %s %s: %T has no field Status", b.resource.kind.Kind, r.key, object)
	}
	if equality.Semantic.DeepEqual(from.Interface(), to.Interface()) {
		b.resource.skip("status")
		return nil
	}
	to.Set(from)
	patched, err := b.resource.patch(ctx, r.object, wanted, "status")
	if apierrors.IsNotFound(err) {
		// If the kind has no status subresource, the answer is the same as for a missing object.
		live, found, readErr := b.resource.live(ctx, r.key)
		if readErr != nil {
			return readErr
		}
		if found && live.GetUID() == r.object.GetUID() {
			return fmt.Errorf("%w, but the object exists: declare the subresource status in the CRD", err)
		}
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		b.consistency.Conflicted(r.key, b.resource.informer.GetStore(), r.object)
	}
	if apierrors.IsNotFound(err) {
		return nil // the object is gone, and its status with it
	}
	if err == nil {
		b.consistency.WroteAt(r.key, b.resource.informer.GetStore(), patched.GetResourceVersion())
	}
	return err
}

// metadataOf returns the metadata that controllers set.
func metadataOf(object metav1.Object) []any {
	return []any{object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetOwnerReferences()}
}

func statusOf(object any) reflect.Value { return reflect.ValueOf(object).Elem().FieldByName("Status") }
