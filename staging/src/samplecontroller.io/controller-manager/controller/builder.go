// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
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

// Change is what a change of a status reports: see [Builder.Paced].
type Change = reconcile.Change

// Kinds of changes.
const (
	// OnlyProgress is a change that readers can wait for, such as that of a count.
	OnlyProgress = reconcile.OnlyProgress
	// Transition is a change that readers wait for, such as that of a condition.
	Transition = reconcile.Transition
)

// Builder builds the controller for objects of type T. Make it with [For] in a [Constructor], declare
// what the controller needs, and call [Builder.Reconcile] last: a later declaration is an error.
type Builder[T Object] struct {
	context     *Context
	resource    *resource[T]
	consistency *reconcile.ConsistencyStore
	recorder    record.EventRecorder
	reporter    *tolerant.Reporter
	reported    *lru.Cache // the errors that were last reported, by key
	watches     []func(*reconcile.Loop)
	sources     []func(context.Context, func(cache.ObjectName)) error
	finalizer   string
	finalize    func(context.Context, *Request[T]) error
	onDeletion  bool
	explain     func(*Request[T]) Explanation
	pace        *reconcile.Pace
	interval    func() time.Duration // of the leader's pace
	changeOf    func(before, after T) Change
	errs        []error
	finished    bool             // Reconcile was called
	uses        sets.Set[string] // see once

	pauseKey   string // of the annotation
	paused     pausedObjects
	conditions []int // the index of the field with the condition Paused, if the controller writes it

	confirmations confirmations
	failures      failureStore
	failing       func(T, *Failure)
}

// For starts building a controller for the objects of a kind. If they have no namespace, give the
// option [ClusterScoped]. The program's scheme must contain the kind. Changes of an object enqueue it.
// Errors are returned by [Builder.Reconcile], which also sets the function that reconciles an object.
//
// The controller reads its own writes: an object is not reconciled while a cache lacks the last
// write for it, by this controller or another one of the process.
func For[T Object](c *Context, opts ...Option) *Builder[T] {
	c.unfinished++
	b := &Builder[T]{context: c, recorder: c.Recorder(), reported: lru.New(maxReported), pauseKey: c.shared.pauseKey()}
	b.pace = b.paceOf(unpaced)
	resource, err := newResource[T](c, "For", opts)
	if err != nil {
		b.errs = append(b.errs, err)
		return b
	}
	if resource.client == nil {
		b.fail(misuse.Errorf("%s: For reconciles whole objects: read metadata with Watch or Refers", c.name))
		return b
	}
	b.resource, b.consistency = resource, c.ConsistencyStore(resource.name.GroupResource())
	b.reporter = c.shared.reporter(resource.name.GroupResource(), b.recorder)
	b.confirmations.owners = resource.informer.GetStore()
	b.watches = append(b.watches, func(l *reconcile.Loop) { reconcile.WatchSelf(l, resource.informer) })
	return b
}

// Reconcile returns the controller that calls do for each enqueued object. It calls it for one
// object of a name at a time, and for at most as many objects at once as it has workers.
//
// The error that do returns determines the next call. After nil, do is called when
// something changes. After a [UserError] the same holds, and an Event reports the error. After an
// error of [RetryAfter], it is called again after the given time. After a [Failure], which an Event
// reports, it is called again when the next try of the write is due. After any other error, it is
// called again with backoff, of at most 30 s if a write was forbidden. A conflict is not logged as an
// error. While a permission to write is missing, the controller is Degraded. A key that cannot be that
// of an object of the kind, because it has a namespace or none, fails.
//
// do is not called for an object that is being deleted, unless [Builder.OnDeletion] is called:
// the garbage collector deletes its dependents. Nor is it called for an object that cannot be decoded;
// an Event reports that. Nor for one that is paused: see [PauseAnnotation].
func (b *Builder[T]) Reconcile(do func(context.Context, *Request[T]) error) (Controller, error) {
	b.declares("Reconcile", do != nil)
	if !b.finished {
		b.context.unfinished--
	}
	b.finished = true
	if len(b.errs) > 0 {
		return nil, misuse.New(errors.Join(b.errs...))
	}
	opts := []reconcile.Option{reconcile.WithConsistencyStore(b.consistency), reconcile.WithReset(b.paused.clear)}
	if b.resource.queue != "" {
		opts = append(opts, reconcile.WithQueue(b.context.name+"-"+b.resource.queue))
	}
	loop := b.context.Loop(func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		return b.reconcile(ctx, key, do)
	}, opts...)
	for _, watch := range b.watches {
		watch(loop)
	}
	b.context.loops = append(b.context.loops, loop)
	b.reportsPauses(loop)
	c := &built[T]{loop, b, new(atomic.Int32)}
	if b.explain != nil {
		return &explained[T]{c}, nil
	}
	return c, nil
}

// Explain sets the function that explains for the status pages what the controller does about an
// object. It reads only from caches and must not call the API; writes by the request fail. It is not
// called for an object that does not exist, that cannot be decoded or, without [Builder.OnDeletion], that is
// being deleted. It may be called on a standby. While a write keeps failing, Next says so instead.
func (b *Builder[T]) Explain(explain func(*Request[T]) Explanation) {
	b.declares("Explain", explain != nil)
	b.explain = explain
}

// Count counts the cached objects in the metric of objects by state: see [Context.CountObjects]. of
// returns one of states for each object, also for one that cannot be decoded.
func (b *Builder[T]) Count(states []State, of func(T) State) {
	if b.declares("Count", of != nil); b.resource != nil && of != nil {
		untyped := func(obj any) State { return of(obj.(T)) }
		b.context.CountObjects(b.resource.name.GroupResource(), b.resource.informer, states, untyped)
	}
}

// Paced spaces the writes of the status of each object, as [reconcile.Pace] says: progress is written
// an interval after it was found, a transition at once, or an interval after the last one, and the last
// state always. changeOf says what a change of the status is; nil means that all are transitions.
// [Request.UpdateStatus] requeues the object if its write has to wait. A negative interval is refused.
func (b *Builder[T]) Paced(interval time.Duration, changeOf func(before, after T) Change) {
	if b.declares("Paced", true); interval < 0 {
		b.fail(misuse.Errorf("%s: Paced with the interval %v: it must not be negative", b.context.name, interval))
	}
	b.pace, b.changeOf = b.paceOf(func() time.Duration { return interval }), changeOf
}

// PacedLive is like [Builder.Paced], with an interval that can change while the program runs.
func (b *Builder[T]) PacedLive(interval *LiveDuration, changeOf func(before, after T) Change) {
	if b.declares("PacedLive", interval != nil); interval != nil {
		b.pace, b.changeOf = b.paceOf(interval.Get), changeOf
	}
}

func unpaced() time.Duration { return 0 }

func (b *Builder[T]) paceOf(interval func() time.Duration) *reconcile.Pace {
	b.interval = interval
	if b.context.DryRun() {
		interval = unpaced // nothing is written, so nothing can follow
	}
	return reconcile.NewPace(interval, clock.RealClock{})
}

// Throttled returns how long the status of an object will not be written, whatever changes, because of
// [Builder.Paced]; 0 if it may be. A function of [Watch] may leave out the keys of throttled objects, so that
// many events cost no call, if each call ends with RequeueAfter([Request.Throttled]).
func (b *Builder[T]) Throttled(key cache.ObjectName) time.Duration { return b.pace.Throttled(key, "") }

func (b *Builder[T]) reconcile(ctx context.Context, key cache.ObjectName,
	do func(context.Context, *Request[T]) error) (time.Duration, error) {
	object, found, err := b.resource.cached(key)
	if err != nil {
		return 0, fmt.Errorf("reading %s %s from the cache: %w", b.resource.kind.Kind, key, err)
	}
	if found && b.ignores(object) {
		b.paused.remove(key)
		return 0, nil
	}
	r := &Request[T]{builder: b, key: key, object: object, cached: object, found: found}
	defer r.over.Store(true)
	if found {
		r.failures = b.failures.start(key, object.GetUID(), object.GetGeneration())
	} else {
		r.failures = b.failures.start(key, "", 0)
	}
	defer b.endCall(ctx, r)
	switch isMisplaced := (key.Namespace == "") != b.resource.cluster; {
	case isMisplaced && found:
		return 0, b.resource.scopeError(key)
	case isMisplaced:
		return 0, b.misplaced(key)
	case !found:
		b.confirmations.forget(key)
		b.pace.Forget(key)
		b.paused.remove(key)
		r.called = true
		err = do(ctx, r)
	case b.reporter.Report(ctx, object):
		b.paused.remove(key)
		return 0, nil
	default:
		err = b.act(ctx, r, do)
	}
	err = b.reportFailures(ctx, r, err)
	if r.refused {
		return 0, errPaused // whatever the function has made of it
	}
	err = b.outcome(r, err) // may set r.after
	return r.after, err
}

// outcome returns the error for the loop, and reports the errors that users can do something about.
func (b *Builder[T]) outcome(r *Request[T], err error) error {
	r.requeueAfter(r.failures.due())
	if err == nil {
		b.reported.Remove(r.key)
		return nil
	}
	p := partsOf(err)
	isNew := b.report(r, p)
	switch {
	case p.external != nil && p.other: // which must not wait for as long as the external system
		return reconcile.RetryAfter(err, sooner(min(p.external.again, soonRetry), r.failures.due()))
	case p.external != nil:
		err = reconcile.RetryAfter(err, sooner(p.external.again, r.failures.due()))
		if !isNew {
			err = reconcile.Logged(err)
		}
		return err
	case p.other:
		return err
	case p.ending && r.key.Namespace == "":
		r.requeueAfter(lastRetry) // nothing enqueues the object when the namespace is created again
	}
	for _, e := range p.users {
		r.requeueAfter(e.again)
	}
	if p.failure {
		return reconcile.Logged(reconcile.RetryAfter(err, r.after))
	}
	return nil
}

// report is the reason and text of an Event about an error.
type report struct{ reason, text string }

// report records an Event for each error that the last call with such errors did not report, and
// reports whether there was one.
func (b *Builder[T]) report(r *Request[T], p parts) (isNew bool) {
	var told []report
	if p.user != nil {
		told = append(told, report{p.user.reason, truncate.To(maxMessage, p.user.Error())})
	}
	if p.external != nil {
		told = append(told, report{p.external.reason, truncate.To(maxMessage, p.external.Error())})
	}
	if len(told) == 0 || !r.found {
		return false
	}
	last, _ := b.reported.Get(r.key)
	before, _ := last.([]report)
	for _, e := range told {
		if !slices.Contains(before, e) {
			isNew = true
			b.recorder.Event(r.object, corev1.EventTypeWarning, e.reason, e.text)
		}
	}
	b.reported.Add(r.key, told)
	return isNew
}
