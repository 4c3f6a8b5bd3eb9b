// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// Kind is the kind of object that a controller is for. Make it with [For].
type Kind[T Object] struct {
	context     *Context
	resource    *resource[T]
	consistency *reconcile.ConsistencyStore
	recorder    record.EventRecorder
	reporter    *tolerant.Reporter
	told        told
	watches     []func(*reconcile.Loop)
	errs        []error
}

// For makes a controller for the objects of a namespaced kind, which the program's scheme
// must know. Changes of an object enqueue it. [Kind.Sync] gives the function that is called
// for it, and returns what went wrong here.
//
// The controller reads its own writes: an object is not synced while a cache lacks what was
// last written for it, by this controller or another of the process.
func For[T Object](c *Context, opts ...Option) *Kind[T] {
	k := &Kind[T]{context: c, recorder: c.Recorder()}
	k.reporter = tolerant.NewReporter(k.recorder)
	resource, err := newResource[T](c, opts)
	if err != nil {
		k.errs = append(k.errs, err)
		return k
	}
	k.resource, k.consistency = resource, c.ConsistencyStore(resource.name.GroupResource())
	k.watches = append(k.watches, func(l *reconcile.Loop) { reconcile.For(l, resource.informer) })
	return k
}

// Sync returns the controller that calls sync for each object that is enqueued, for one at a
// time of one name, and at most for as many as it has workers.
//
// What sync returns decides when it is called again for the object: after nil, when something
// changes; after a [UserError], the same, and an Event says why; after another error, with a
// backoff, which is 30 s at most for a forbidden write. A conflict is not logged as an error.
// While a permission to write is missing, the controller is Degraded.
//
// sync is not called for an object that is being deleted: the garbage collector deletes what
// it owns. Nor is it called for one that cannot be decoded, which an Event reports.
func (k *Kind[T]) Sync(sync func(context.Context, *Sync[T]) error) (Controller, error) {
	if len(k.errs) > 0 {
		return nil, errors.Join(k.errs...)
	}
	loop := k.context.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		return k.sync(ctx, key, sync)
	})
	for _, watch := range k.watches {
		watch(loop)
	}
	return loop, nil
}

func (k *Kind[T]) sync(ctx context.Context, key cache.ObjectName, sync func(context.Context, *Sync[T]) error) (time.Duration, error) {
	if !k.consistency.EnsureReady(key) {
		return 0, reconcile.ErrStale
	}
	defer k.consistency.Done(key)
	object, found, err := k.resource.cached(key)
	if err != nil {
		return 0, fmt.Errorf("reading %s %s from the cache: %w", k.resource.kind.Kind, key, err)
	}
	if found && (object.GetDeletionTimestamp() != nil || k.reporter.Report(ctx, object)) {
		return 0, nil
	}
	s := &Sync[T]{kind: k, key: key, object: object, found: found}
	err = sync(ctx, s)
	if wrong := (*userError)(nil); errors.As(err, &wrong) {
		if found && k.told.tell(key, wrong.Error()) {
			k.recorder.Event(object, corev1.EventTypeWarning, wrong.reason, wrong.Error())
		}
		return sooner(s.after, wrong.again), nil
	}
	if err == nil {
		k.told.forget(key)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return s.after, nil // the object goes with its namespace
	}
	return s.after, err
}

// sooner returns the shorter of two times; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Sync is one call of a sync function, for one object. It must not be used after that.
type Sync[T Object] struct {
	kind   *Kind[T]
	key    cache.ObjectName
	object T // as cached
	found  bool
	after  time.Duration
}

// Key returns the namespace and name of the object.
func (s *Sync[T]) Key() cache.ObjectName { return s.key }

// Object returns a copy of the object as the cache has it. ok is false if there is none, or
// the selector does not match it any more.
func (s *Sync[T]) Object() (object T, ok bool) {
	if !s.found {
		return object, false
	}
	return s.object.DeepCopyObject().(T), true
}

// RequeueAfter has the object synced again after d, if sync returns nil. Of several calls
// the shortest time counts.
func (s *Sync[T]) RequeueAfter(d time.Duration) { s.after = sooner(s.after, d) }

// Event records an Event about the object, if there is one. eventType is
// corev1.EventTypeNormal or corev1.EventTypeWarning. Call it only after something happened:
// an Event at each sync says nothing.
func (s *Sync[T]) Event(eventType, reason, format string, args ...any) {
	if s.found {
		s.kind.recorder.Eventf(s.object, eventType, reason, format, args...)
	}
}

// UpdateStatus writes the Status field of object, a copy that [Sync.Object] returned, where
// it differs from the cached one, by a merge patch of the status subresource with the
// resourceVersion of that. It writes nothing if nothing differs, or if the object is gone.
func (s *Sync[T]) UpdateStatus(ctx context.Context, object T) error {
	if !s.found {
		return nil
	}
	k := s.kind
	wanted := s.object.DeepCopyObject().(T)
	from, to := statusOf(object), statusOf(wanted)
	if !from.IsValid() {
		return fmt.Errorf("updating the status of %s %s: %T has no field Status", k.resource.kind.Kind, s.key, object)
	}
	if equality.Semantic.DeepEqual(from.Interface(), to.Interface()) {
		k.context.Writes().Skip(k.resource.inMetrics("status"))
		return nil
	}
	to.Set(from)
	patched, err := k.resource.patch(ctx, s.object, wanted, "status")
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		k.consistency.Conflicted(s.key, k.resource.informer.GetStore(), s.object)
	}
	if apierrors.IsNotFound(err) {
		return nil // the object is gone, and its status with it
	}
	if err == nil {
		k.consistency.WroteAt(s.key, k.resource.informer.GetStore(), patched.GetResourceVersion())
	}
	return err
}

func statusOf(object any) reflect.Value { return reflect.ValueOf(object).Elem().FieldByName("Status") }
