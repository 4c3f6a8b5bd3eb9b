// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Builder builds the controller for objects of type T. Make it with [For].
type Builder[T Object] struct {
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
// others: see [Owns]. The program's scheme must contain the kind. Changes of an object enqueue it.
// Errors are returned by [Builder.Reconcile], which also sets the function that reconciles an object.
//
// The controller reads its own writes: an object is not reconciled while a cache lacks the last
// write for it, by this controller or another one of the process.
func For[T Object](c *Context, opts ...Option) *Builder[T] {
	c.unfinished++
	b := &Builder[T]{context: c, recorder: c.Recorder(), reported: lru.New(maxReported)}
	b.reporter = tolerant.NewReporter(b.recorder)
	resource, err := newResource[T](c, opts)
	if err != nil {
		b.errs = append(b.errs, err)
		return b
	}
	b.resource, b.consistency = resource, c.ConsistencyStore(resource.name.GroupResource())
	b.watches = append(b.watches, func(l *reconcile.Loop) { reconcile.For(l, resource.informer) })
	return b
}

// Reconcile returns the controller that calls reconcile for each enqueued object. It calls it for one
// object of a name at a time, and for at most as many objects at once as it has workers.
//
// The error that reconcile returns determines the next call. After nil, reconcile is called when
// something changes. After a [UserError] the same holds, and an Event reports the error. After
// any other error, it is called again with backoff, of at most 30 s if a write was forbidden.
// A conflict is not logged as an error. While a permission to write is missing, the controller
// is Degraded.
//
// reconcile is not called for an object that is being deleted: the garbage collector deletes its
// dependents. Nor is it called for an object that cannot be decoded; an Event reports that.
func (b *Builder[T]) Reconcile(do func(context.Context, *Request[T]) error) (Controller, error) {
	b.context.unfinished--
	if len(b.errs) > 0 {
		return nil, misuse.New(errors.Join(b.errs...))
	}
	loop := b.context.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		return b.reconcile(ctx, key, do)
	})
	for _, watch := range b.watches {
		watch(loop)
	}
	return loop, nil
}

func (b *Builder[T]) reconcile(ctx context.Context, key cache.ObjectName, do func(context.Context, *Request[T]) error) (time.Duration, error) {
	if !b.consistency.EnsureReady(key) {
		return 0, reconcile.ErrStale
	}
	defer b.consistency.Done(key)
	object, found, err := b.resource.cached(key)
	if err != nil {
		return 0, fmt.Errorf("reading %s %s from the cache: %w", b.resource.kind.Kind, key, err)
	}
	if found && (object.GetDeletionTimestamp() != nil || b.reporter.Report(ctx, object)) {
		return 0, nil
	}
	r := &Request[T]{builder: b, key: key, object: object, found: found}
	err = do(ctx, r)
	only, wrong := userErrors(err)
	if wrong != nil && found {
		text := truncate.To(maxMessage, wrong.Error())
		if last, _ := b.reported.Get(key); last != text {
			b.reported.Add(key, text)
			b.recorder.Event(object, corev1.EventTypeWarning, wrong.reason, text)
		}
	}
	if only != nil {
		for _, e := range only {
			r.RequeueAfter(e.again)
		}
		return r.after, nil
	}
	if err == nil {
		b.reported.Remove(key)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return r.after, nil // the object is deleted with its namespace
	}
	return r.after, err
}
