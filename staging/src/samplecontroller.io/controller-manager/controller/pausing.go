// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
)

// Secondary declares that another controller of the program owns the conditions of the objects. While an object
// is paused, only the owner writes the condition Paused and Events. It is for [For].
func Secondary() Option {
	return func(o *kindOptions) {
		o.only("Secondary", "For")
		o.secondary = true
	}
}

// pausedObjects are the objects that a controller left alone at their last sync.
type pausedObjects struct {
	mutex sync.Mutex
	byKey map[cache.ObjectName]string // the invalid value that an Event has reported
}

func (o *pausedObjects) count() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.byKey)
}

// clear forgets all objects. The loop calls it when it begins and ends to work.
func (o *pausedObjects) clear() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.byKey = nil
}

func (o *pausedObjects) remove(key cache.ObjectName) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.byKey, key)
}

// add adds an object, and reports whether its invalid value is not yet reported.
func (o *pausedObjects) add(key cache.ObjectName, invalid string) (isNew bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.byKey == nil {
		o.byKey = map[cache.ObjectName]string{}
	}
	before, known := o.byKey[key]
	o.byKey[key] = invalid
	return !known || before != invalid
}

// pausableKind is the pausable of a builder.
type pausableKind[T Object] struct {
	builder *Builder[T]
	loop    *reconcile.Loop
}

func (k pausableKind[T]) pausedObjects() int { return k.builder.paused.count() }

func (k pausableKind[T]) addPaused(to sets.Set[pausedObject]) {
	paused := &k.builder.paused
	paused.mutex.Lock()
	defer paused.mutex.Unlock()
	for key := range paused.byKey {
		to.Insert(pausedObject{k.builder.resource.name.GroupResource(), key})
	}
}

func (k pausableKind[T]) enqueue(namespace, trigger string) {
	indexer := k.builder.resource.informer.GetIndexer()
	keys := indexer.ListKeys()
	if namespace != "" {
		keys, _ = indexer.IndexKeys(cache.NamespaceIndex, namespace) // informers have the index
	}
	for _, key := range keys {
		if name, err := cache.ParseObjectName(key); err == nil {
			k.loop.Enqueue(name, trigger)
		}
	}
}

// inStatus returns the index of a field of Status with a type in a struct, nil if it has none.
func inStatus(at reflect.Type, name string, of reflect.Type) []int {
	status, ok := at.FieldByName("Status")
	if !ok || status.Type.Kind() != reflect.Struct {
		return nil
	}
	field, ok := status.Type.FieldByName(name)
	if !ok || field.Type != of {
		return nil
	}
	index := slices.Concat(status.Index, field.Index)
	for _, i := range index {
		if at.Kind() != reflect.Struct {
			return nil // promoted from a pointer, which may be nil
		}
		at = at.Field(i).Type
	}
	return index
}

// conditionsOf returns the conditions of an object, nil if the controller does not write the condition Paused.
func (b *Builder[T]) conditionsOf(object T) *[]metav1.Condition {
	if b.conditions == nil {
		return nil
	}
	field := reflect.ValueOf(object).Elem().FieldByIndex(b.conditions)
	return field.Addr().Interface().(*[]metav1.Condition)
}

// reportsPauses finishes the declarations about pauses.
func (b *Builder[T]) reportsPauses(loop *reconcile.Loop) {
	status := subresource(b.resource.name.GroupResource(), "status")
	if !b.resource.secondary && b.context.declared[status].Has("patch") {
		b.conditions = inStatus(reflect.TypeFor[T]().Elem(), "Conditions", reflect.TypeFor[[]metav1.Condition]())
	}
	b.context.shared.mayPause(b.context.name, pausableKind[T]{b, loop})
}

// act reconciles an object that can be decoded, unless it is paused.
func (b *Builder[T]) act(ctx context.Context, r *Request[T], do func(context.Context, *Request[T]) error) error {
	p, err := b.pauseOf(r.object)
	if err != nil {
		return r.isStale(err)
	}
	if p != nil {
		return b.leaveAlone(ctx, r, p)
	}
	b.paused.remove(r.key)
	switch {
	case r.object.GetDeletionTimestamp() == nil && b.finalize != nil && !b.finalizes(r.object):
		if err := b.addFinalizer(ctx, r); err != nil || !b.resource.dryRun {
			return err
		}
		return do(ctx, r) // no event follows
	case r.object.GetDeletionTimestamp() != nil && b.finalizes(r.object):
		return b.cleanUp(ctx, r)
	default:
		r.called = true
		return do(ctx, r)
	}
}

// leaveAlone reports that the object is paused, by one write of its status.
func (b *Builder[T]) leaveAlone(ctx context.Context, r *Request[T], p *pause) error {
	r.pausing = true
	isNew := b.paused.add(r.key, p.invalid)
	if !p.until.IsZero() {
		r.requeueAfter(max(time.Until(p.until), time.Millisecond))
	}
	if p.namespace != "" && p.isInvalid && !b.resource.secondary {
		b.reportNamespace(p)
	}
	if b.conditions == nil {
		if isNew && p.isInvalid && p.namespace == "" && !b.resource.secondary {
			b.recorder.Event(r.object, corev1.EventTypeWarning, reasonInvalidPause, p.message())
		}
		return nil
	}
	now := metav1.Condition{Type: ConditionPaused, Status: metav1.ConditionTrue, Reason: p.reason, Message: p.message(),
		ObservedGeneration: r.object.GetGeneration()}
	before := meta.FindStatusCondition(*b.conditionsOf(r.object), ConditionPaused)
	isPaused := before != nil && before.Status == metav1.ConditionTrue
	if isPaused && (before.Reason == now.Reason && before.Message == now.Message || b.isOthers(before)) {
		return nil // also if the spec has changed: one write says that it is paused
	}
	object, version := r.object.DeepCopyObject().(T), r.object.GetResourceVersion()
	meta.SetStatusCondition(b.conditionsOf(object), now)
	if err := r.UpdateStatus(ctx, object); err != nil || r.object.GetResourceVersion() == version {
		return err
	}
	switch {
	case p.isInvalid && p.namespace == "":
		b.recorder.Event(r.object, corev1.EventTypeWarning, reasonInvalidPause, now.Message)
	case !isPaused:
		b.recorder.Event(r.object, corev1.EventTypeNormal, reasonPaused, now.Message)
	}
	return nil
}

// reportNamespace records an Event about the invalid annotation of a namespace, once for each value.
func (b *Builder[T]) reportNamespace(p *pause) {
	namespaces := b.context.shared.namespaces.Load()
	if namespaces == nil || !namespaces.isNews(p.namespace, p.invalid) {
		return
	}
	b.recorder.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: p.namespace,
		UID: namespaces.uid(p.namespace)}, corev1.EventTypeWarning, reasonInvalidPause, p.message())
}

// isPausedNow returns an error if the cache shows by now that the object is paused.
func (r *Request[T]) isPausedNow() error {
	if r.pausing || !r.found {
		return nil
	}
	object := r.object
	if cached, found, err := r.builder.resource.cached(r.key); err == nil && found && cached.GetUID() == object.GetUID() {
		object = cached
	}
	return r.refuse(r.builder.pauseOf(object))
}

// refuse returns the error for a write that the result of pauseOf forbids, nil if it does not.
func (r *Request[T]) refuse(p *pause, err error) error {
	if p != nil {
		err = errPaused
	}
	r.refused = r.refused || err != nil
	return r.isStale(err)
}

// unpause removes the condition Paused from the status that is about to be written, and reports whether it had
// it. A condition of that type with another reason is the program's own.
func (b *Builder[T]) unpause(object T) bool {
	conditions := b.conditionsOf(object)
	if conditions == nil {
		return false
	}
	c := meta.FindStatusCondition(*conditions, ConditionPaused)
	if c == nil {
		return false
	}
	switch c.Reason {
	case ReasonPausedByController, ReasonPausedByAnnotation, ReasonPausedByNamespace:
		return !b.isOthers(c) && meta.RemoveStatusCondition(conditions, ConditionPaused)
	default:
		return false
	}
}

// isOthers reports whether the condition says that another controller is paused, and it still is. Two controllers that
// report the pauses of one kind would otherwise replace each other's condition, again and again.
func (b *Builder[T]) isOthers(c *metav1.Condition) bool {
	if c.Reason != ReasonPausedByController {
		return false
	}
	s := b.context.shared
	return slices.ContainsFunc(s.pausableNames(), func(name string) bool {
		_, paused := s.pausedUntil(name)
		return paused && name != b.context.name && strings.HasPrefix(c.Message, "Paused by "+byController(name)+" until ")
	})
}

// resume removes the condition Paused, if the controller's function was called and no write of the status has.
func (b *Builder[T]) resume(ctx context.Context, r *Request[T]) error {
	if b.conditions == nil || !r.called || !r.found || r.stale != nil || r.object.GetDeletionTimestamp() != nil ||
		!b.unpause(r.object.DeepCopyObject().(T)) { // UpdateStatus would forget a change that waits for its interval
		return nil
	}
	return r.UpdateStatus(ctx, r.object.DeepCopyObject().(T)) // which removes it
}
