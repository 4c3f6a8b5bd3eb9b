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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/lru"

	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// maxReported is the number of objects whose user error is remembered, so that each error is
// reported once. With more, reports may repeat.
const maxReported = 4096

// maxMessage is the maximum length of the Event about a user error, in bytes.
const maxMessage = 1000

// Kind builds the controller for objects of type T. Make it with [For].
type Kind[T Object] struct {
	context     *Context
	resource    *resource[T]
	consistency *reconcile.ConsistencyStore
	recorder    record.EventRecorder
	reporter    *tolerant.Reporter
	reported    *lru.Cache // the last user error by key
	watches     []func(*reconcile.Loop)
	errs        []error
}

// For starts building a controller for the objects of a kind, which must have a namespace to own
// others: see [Owns]. The program's scheme must contain the kind. Changes of an object enqueue it. Errors are returned by [Kind.Sync],
// which also sets the sync function.
//
// The controller reads its own writes: an object is not synced while a cache lacks the last
// write for it, by this controller or another one of the process.
func For[T Object](c *Context, opts ...Option) *Kind[T] {
	c.unsynced++
	k := &Kind[T]{context: c, recorder: c.Recorder(), reported: lru.New(maxReported)}
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

// Sync returns the controller that calls sync for each enqueued object. It calls sync for one
// object of a name at a time, and for at most as many objects at once as it has workers.
//
// The error that sync returns determines the next call. After nil, sync is called when
// something changes. After a [UserError] the same holds, and an Event reports the error. After
// any other error, it is called again with backoff, of at most 30 s if a write was forbidden.
// A conflict is not logged as an error. While a permission to write is missing, the controller
// is Degraded.
//
// sync is not called for an object that is being deleted: the garbage collector deletes its
// dependents. Nor is it called for an object that cannot be decoded; an Event reports that.
func (k *Kind[T]) Sync(sync func(context.Context, *Sync[T]) error) (Controller, error) {
	k.context.unsynced--
	if len(k.errs) > 0 {
		return nil, misuse.New(errors.Join(k.errs...))
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
	only, wrong := userErrors(err)
	if wrong != nil && found {
		text := truncate.To(maxMessage, wrong.Error())
		if last, _ := k.reported.Get(key); last != text {
			k.reported.Add(key, text)
			k.recorder.Event(object, corev1.EventTypeWarning, wrong.reason, text)
		}
	}
	if only != nil {
		for _, e := range only {
			s.RequeueAfter(e.again)
		}
		return s.after, nil
	}
	if err == nil {
		k.reported.Remove(key)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return s.after, nil // the object is deleted with its namespace
	}
	return s.after, err
}

// sooner returns the shorter of two delays. 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Sync is one call of a sync function, for one object. It must not be used after the call.
type Sync[T Object] struct {
	kind   *Kind[T]
	key    cache.ObjectName
	object T // as cached
	found  bool
	after  time.Duration
}

// Key returns the namespace and name of the object.
func (s *Sync[T]) Key() cache.ObjectName { return s.key }

// Object returns a copy of the cached object. ok is false if there is none, or if the selector
// no longer matches it.
func (s *Sync[T]) Object() (object T, ok bool) {
	if !s.found {
		return object, false
	}
	return s.object.DeepCopyObject().(T), true
}

// RequeueAfter syncs the object again after d, if sync returns nil. If it is called several
// times, the shortest delay counts.
func (s *Sync[T]) RequeueAfter(d time.Duration) { s.after = sooner(s.after, d) }

// Event records an Event about the object, if it exists. eventType is corev1.EventTypeNormal
// or corev1.EventTypeWarning. Call it only when something has happened: an Event in each sync
// has no value.
func (s *Sync[T]) Event(eventType, reason, format string, args ...any) {
	if s.found {
		s.kind.recorder.Eventf(s.object, eventType, reason, format, args...)
	}
}

// UpdateStatus writes the Status field of object, a copy returned by [Sync.Object], if it
// differs from the cached one. It sends a JSON patch of the fields that differ to the status
// subresource, with the cached resourceVersion. It writes nothing if nothing differs, or if the
// object is gone. It returns an error if the metadata differs, because it cannot write that.
func (s *Sync[T]) UpdateStatus(ctx context.Context, object T) error {
	if !s.found {
		return nil
	}
	k := s.kind
	if !equality.Semantic.DeepEqual(metadataOf(object), metadataOf(s.object)) {
		return fmt.Errorf("updating the status of %s %s: its metadata has been changed, which is not part of the status: change a copy that is not passed to UpdateStatus", k.resource.kind.Kind, s.key)
	}
	wanted := s.object.DeepCopyObject().(T)
	from, to := statusOf(object), statusOf(wanted)
	if !from.IsValid() {
		return fmt.Errorf("updating the status of %s %s: %T has no field Status", k.resource.kind.Kind, s.key, object)
	}
	if equality.Semantic.DeepEqual(from.Interface(), to.Interface()) {
		k.resource.skip("status")
		return nil
	}
	to.Set(from)
	patched, err := k.resource.patch(ctx, s.object, wanted, "status")
	if apierrors.IsNotFound(err) {
		// If the kind has no status subresource, the answer is the same as for a missing object.
		live, found, readErr := k.resource.live(ctx, s.key)
		if readErr != nil {
			return readErr
		}
		if found && live.GetUID() == s.object.GetUID() {
			return fmt.Errorf("%w, but the object exists: declare the subresource status in the CRD", err)
		}
	}
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

// metadataOf returns the metadata that controllers set.
func metadataOf(object metav1.Object) []any {
	return []any{object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetOwnerReferences()}
}

func statusOf(object any) reflect.Value { return reflect.ValueOf(object).Elem().FieldByName("Status") }
