// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/writes"
	"samplecontroller.io/controller-manager/reconcile"
)

// sooner returns the shorter of two delays. 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Request is one call of the function of a controller, for one object. It must not be used after the
// call: then its writes fail. It is not safe for concurrent use, nor are the methods of [Owned] that get it.
type Request[T Object] struct {
	builder *Builder[T]
	key     cache.ObjectName
	object  T // as cached
	cached  T // in a dry run, where object becomes the result of writes that are not stored
	found   bool
	after   time.Duration
	asked   bool  // the function has called RequeueAfter
	stale   error // a write of this call showed that a cache is stale
	written bool  // object is no longer the cached version, but the result of a write
	called  bool  // a function of the controller was
	decided bool  // the function has said which writes the object needs
	pausing bool  // the object is paused, and only that may be written
	refused bool  // a write was refused, because the object was paused during the call
	over    atomic.Bool

	resuming bool // the status that is written lacks the condition Paused, which the object has

	failures *failuresOf
}

// writable returns an error if the call is over, or only explains.
func (r *Request[T]) writable() error {
	if r.over.Load() {
		return fmt.Errorf("writing for %s %s: a request can write only in the functions given to Reconcile and "+
			"Finalize, until they return", r.builder.resource.kind.Kind, r.key)
	}
	return nil
}

// Key returns the namespace and name of the object.
func (r *Request[T]) Key() cache.ObjectName { return r.key }

// Object returns a copy of the object as cached or, after a write of this call, as that has returned it. ok
// is false if there is none, or if the selector no longer matches it.
func (r *Request[T]) Object() (object T, ok bool) {
	if !r.found {
		return object, false
	}
	return r.object.DeepCopyObject().(T), true
}

// RequeueAfter reconciles the object again after d, if this call returns nil. If it is called several
// times, the shortest delay counts. A d of 0 or less has no effect.
func (r *Request[T]) RequeueAfter(d time.Duration) {
	if d > 0 {
		r.asked = true
		r.requeueAfter(d)
	}
}

// requeueAfter is RequeueAfter for the library itself.
func (r *Request[T]) requeueAfter(d time.Duration) { r.after = sooner(r.after, d) }

// Throttled returns how long UpdateStatus will not write, whatever changes, because of [Builder.Paced]; 0
// if it may write. A function that computes nothing but a status need not compute it until then.
func (r *Request[T]) Throttled() time.Duration {
	if !r.found {
		return 0
	}
	return r.builder.pace.Throttled(r.key, r.object.GetUID())
}

// Event records an Event about the object, if it exists. eventType is corev1.EventTypeNormal
// or corev1.EventTypeWarning; with another type the controller is Degraded. Call it only when something
// has happened: an Event in each call has no value.
func (r *Request[T]) Event(eventType, reason, format string, args ...any) {
	if r.found {
		r.builder.recorder.Eventf(r.object, eventType, reason, format, args...)
	}
}

// Patch writes the labels, annotations, finalizers and spec of object, a copy returned by
// [Request.Object], if they differ from the cached ones. It sends a JSON patch of the fields that
// differ, with the cached resourceVersion, and leaves the status alone. It writes nothing if nothing
// differs, or if the object is gone. A later call of UpdateStatus is based on the result. A finalizer can
// be added only with [Builder.OnDeletion], or by [Builder.Finalize]. It needs the option [MayPatch].
// Return its error, so that the write is tried again.
func (r *Request[T]) Patch(ctx context.Context, object T) error {
	if !r.found {
		return nil
	}
	b := r.builder
	if err := errors.Join(r.writable(), b.resource.may(b.context, "patch", "For", "MayPatch")); err != nil {
		return err
	}
	if cache.MetaObjectToName(object) != r.key || object.GetUID() != r.object.GetUID() {
		return fmt.Errorf("patching %s %s: got %s instead: change a copy that Object returns", b.resource.kind.Kind, r.key, cache.MetaObjectToName(object))
	}
	if f := b.unhandled(r.object, object); f != "" {
		return fmt.Errorf("patching %s %s: the finalizer %q would never be removed, because objects that are being "+
			"deleted are not reconciled: use Finalize, or OnDeletion", b.resource.kind.Kind, r.key, f)
	}
	wanted := object.DeepCopyObject().(T)
	if to, from := statusOf(wanted), statusOf(r.object); to.IsValid() {
		to.Set(from)
	}
	if same(wanted, r.object) {
		b.resource.skip()
		return nil
	}
	return r.patchOwn(ctx, wanted)
}

// Delete deletes the object, if it is still the cached version. The garbage collector deletes its
// dependents in the background. It does nothing if the object is gone or is already being deleted. It
// needs the option [MayDelete].
func (r *Request[T]) Delete(ctx context.Context) error {
	if !r.found || r.object.GetDeletionTimestamp() != nil {
		return nil
	}
	b, store := r.builder, r.builder.resource.informer.GetStore()
	if err := errors.Join(r.writable(), b.resource.may(b.context, "delete", "For", "MayDelete")); err != nil {
		return err
	}
	w := b.resource.writing("delete", r.key, nil)
	w.own, w.uid = true, r.object.GetUID()
	w.send = func(ctx context.Context) error {
		err := b.resource.delete(ctx, r.object)
		if err == nil && !b.resource.dryRun || isGone(err) || isConflict(err) {
			b.consistency.Conflicted(r.key, store, r.object) // wait until the cache has another version, or none
		}
		return r.isStale(err)
	}
	return r.try(ctx, w)
}

// patchOwn patches the object itself, and remembers what the cache must reach.
func (r *Request[T]) patchOwn(ctx context.Context, wanted T, subresources ...string) error {
	b, store := r.builder, r.builder.resource.informer.GetStore()
	try := func(ctx context.Context, w sentWrite) error {
		send := w.send
		w.own, w.send = true, func(ctx context.Context) error {
			err := send(ctx)
			if isConflict(err) || isGone(err) {
				b.consistency.Conflicted(r.key, store, r.object)
			}
			return r.isStale(err)
		}
		return r.try(ctx, w)
	}
	before, isDryRun, isStatus := r.object, b.resource.dryRun, len(subresources) > 0
	if isDryRun {
		before = stored(r.cached, wanted, isStatus)
	}
	written, err := b.resource.patch(ctx, try, before, wanted, subresources...)
	if err != nil {
		return err
	}
	if isDryRun {
		written = merged(written, wanted, isStatus)
	}
	b.consistency.WroteAt(r.key, store, written.GetResourceVersion())
	r.object, r.written = written, true
	return nil
}

// UpdateStatus writes the Status field of object, a copy returned by [Request.Object], if it
// differs from the cached one. It sends a JSON patch of the fields that differ to the status
// subresource, with the cached resourceVersion. It writes nothing if nothing differs, or if the
// object is gone. It returns an error if anything else differs, because it cannot write that: see
// [Request.Patch]. It needs the option [MayPatchStatus]. A CRD that lacks a field of the status makes it
// fail with a [Failure], instead of losing the field.
//
// If another write of this call has shown that a cache is stale, it writes nothing and returns that
// error, because the status would describe an old state. While the API server does not serve the
// subresource status, the controller is Degraded, and UpdateStatus writes nothing but a probe each 30 s.
func (r *Request[T]) UpdateStatus(ctx context.Context, object T) error {
	if !r.found {
		return nil
	}
	if r.stale != nil {
		return r.stale
	}
	b := r.builder
	if err := errors.Join(r.writable(), b.resource.may(b.context, "patch", "For", "MayPatchStatus", "status")); err != nil {
		return err
	}
	wanted, err := r.withStatus(object)
	if err != nil {
		return err
	}
	if b.failing != nil && !r.pausing {
		b.failing(wanted, r.failures.inStatus())
	}
	r.resuming = !r.pausing && b.unpause(wanted)
	if same(statusOf(wanted).Interface(), statusOf(r.object).Interface()) {
		plan.ComparedStatus(ctx)
		b.pace.UpToDate(r.key)
		b.resource.skip("status")
		return nil
	}
	change := reconcile.Transition
	if b.changeOf != nil && !r.pausing && !r.resuming {
		change = b.changeOf(r.object, wanted)
	}
	urgency := change
	if b.confirmations.needed() {
		urgency = reconcile.Transition // the write lets the cache of owners catch up
	}
	if wait := b.pace.Wait(r.key, r.object.GetUID(), urgency); wait > 0 {
		r.requeueAfter(wait)
		return nil
	}
	return r.sendStatus(ctx, wanted, change)
}

// withStatus returns a copy of the cached object with the status of object, and an error if anything else differs.
func (r *Request[T]) withStatus(object T) (wanted T, err error) {
	kind := r.builder.resource.kind.Kind
	if !same(metadataOf(object), metadataOf(r.object)) {
		return wanted, fmt.Errorf("updating the status of %s %s: its metadata has been changed, which is not part of the status: "+
			"write it with Patch", kind, r.key)
	}
	wanted = r.object.DeepCopyObject().(T)
	from, to := statusOf(object), statusOf(wanted)
	if !from.IsValid() {
		return wanted, fmt.Errorf("updating the status of %s %s: %T has no field Status", kind, r.key, object)
	}
	to.Set(from)
	if !r.written && !same(object, wanted) {
		return wanted, fmt.Errorf("updating the status of %s %s: its spec has been changed, which is not part of the status: "+
			"write it with Patch, before the status", kind, r.key)
	}
	return wanted, nil
}

// sendStatus writes a status, or a probe if the API server does not serve it.
func (r *Request[T]) sendStatus(ctx context.Context, wanted T, change reconcile.Change) error {
	b, uid := r.builder, r.object.GetUID()
	transport, resource := b.resource.writes, b.resource.inMetrics("status")
	if wait := transport.Paused(resource); wait > 0 {
		r.requeueAfter(wait)
		return nil
	}
	err := b.pace.Write(r.key, uid, change, func() error {
		return r.patchOwn(plan.Delayed(ctx, b.interval()), wanted, "status")
	})
	if err == nil {
		plan.ComparedStatus(ctx)
		transport.Served(ctx, resource)
		if r.resuming {
			b.recorder.Event(r.object, corev1.EventTypeNormal, reasonResumed, "No longer paused")
		}
	}
	if !isGone(err) {
		return err
	}
	// If the kind has no status subresource, the answer is the same as for a missing object.
	live, found, readErr := b.resource.live(ctx, r.key)
	if readErr != nil {
		return readErr
	}
	if found && live.GetUID() == uid {
		transport.NotServed(ctx, resource)
		r.requeueAfter(writes.ProbeInterval)
	}
	return nil // else the object is gone, and its status with it
}

// metadataOf returns the metadata that controllers set.
func metadataOf(object metav1.Object) []any {
	return []any{object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetOwnerReferences()}
}

func statusOf(object any) reflect.Value { return reflect.ValueOf(object).Elem().FieldByName("Status") }
