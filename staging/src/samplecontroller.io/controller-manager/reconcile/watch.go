// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"reflect"
	"runtime/debug"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Object is an object in the cache of an informer. It need not be a complete API object,
// because a transform may have removed fields.
type Object interface {
	cache.Object
	GetResourceVersion() string
}

// For enqueues the key of each object of informer that is added, changed or deleted. Use it
// for the kind that the controller reconciles.
func For[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T]) {
	Watch(l, informer, func(obj T) []cache.ObjectName { return []cache.ObjectName{nameOf(obj)} })
}

// Watch enqueues the keys that depend on an object of informer, such as those of its owners. A
// change enqueues the keys of the old and of the new object, because the owner may have
// changed.
//
// keys must be a pure function of the object and of the informers' indexes. It must not call
// the API or take locks, because it runs in the informer's event delivery.
func Watch[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], keys func(T) []cache.ObjectName) {
	WatchChanges(l, informer, func(T, T) bool { return true }, keys)
}

// WatchChanges is like [Watch], but ignores updates for which concerns returns false. concerns
// must be as pure as keys.
func WatchChanges[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], concerns func(oldObj, newObj T) bool, keys func(T) []cache.ObjectName) {
	add(l, informer, func(h *handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
		return cache.TypedResourceEventHandlerDetailedFuncs[T]{
			AddFunc:    func(obj T, _ bool) { h.enqueueAll("added", keys, obj) },
			UpdateFunc: h.updated(concerns, func(oldObj, newObj T) { h.enqueueAll("changed", keys, newObj, oldObj) }),
			DeleteFunc: h.deleted(keys),
		}
	})
}

// WatchUpdates enqueues the keys that keys returns for the new object of an update for which
// concerns returns true. It ignores additions and deletions. keys may remember what such an
// update shows only once.
func WatchUpdates[T Object](
	l *Loop,
	informer cache.TypedSharedIndexInformer[T],
	concerns func(oldObj, newObj T) bool,
	keys func(T) []cache.ObjectName,
) {
	add(l, informer, func(h *handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
		return cache.TypedResourceEventHandlerDetailedFuncs[T]{
			UpdateFunc: h.updated(concerns, func(_, newObj T) { h.enqueueAll("changed", keys, newObj) }),
		}
	})
}

// WatchDeletions enqueues the keys that keys returns for a deleted object, in its last known
// state. keys may remember what is known only at that time.
func WatchDeletions[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], keys func(T) []cache.ObjectName) {
	add(l, informer, func(h *handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
		return cache.TypedResourceEventHandlerDetailedFuncs[T]{DeleteFunc: h.deleted(keys)}
	})
}

// add adds a watch of an informer to the loop.
func add[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], funcs func(*handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T]) {
	l.watches = append(l.watches, watch{
		informer: informer,
		add: func(ctx context.Context, enqueue enqueueFunc) (cache.ResourceEventHandlerRegistration, error) {
			h := &handler[T]{loop: l, logger: klog.FromContext(ctx), enqueue: enqueue, what: reflect.TypeFor[T]().String()}
			if l.sources != nil {
				h.what = l.sources.Resource(informer.GetStore())
			}
			return informer.AddTypedEventHandler(funcs(h), cache.HandlerOptions{Logger: &h.logger})
		},
	})
}

// handler enqueues the keys of events of one informer.
type handler[T Object] struct {
	loop    *Loop
	logger  klog.Logger
	enqueue enqueueFunc
	what    string // the resource, for triggers and logs
}

// updated returns the handler of updates for which concerns returns true.
func (h *handler[T]) updated(
	concerns func(oldObj, newObj T) bool, handle func(oldObj, newObj T),
) func(oldObj, newObj T) {
	return func(oldObj, newObj T) {
		// A resync repeats the object unchanged.
		if !h.loop.resyncs && oldObj.GetResourceVersion() == newObj.GetResourceVersion() {
			return
		}
		h.safely("changed", newObj, func() {
			if concerns(oldObj, newObj) {
				handle(oldObj, newObj)
			}
		})
	}
}

// deleted returns the handler of deletions. Without the last state of the object, its keys are
// unknown. They were enqueued when the object was last seen.
func (h *handler[T]) deleted(keys func(T) []cache.ObjectName) func(cache.DeletedObject[T]) {
	return func(deleted cache.DeletedObject[T]) {
		if none := *new(T); deleted.OptionalObj != none {
			h.enqueueAll("deleted", keys, deleted.OptionalObj)
		}
	}
}

// enqueueAll enqueues the keys of objects, each key once: between two additions, a worker could
// already sync it.
func (h *handler[T]) enqueueAll(event string, keys func(T) []cache.ObjectName, objs ...T) {
	h.safely(event, objs[0], func() {
		all := keys(objs[0])
		for _, obj := range objs[1:] {
			all = append(slices.Clone(all), keys(obj)...)
		}
		if len(all) > 1 {
			all = sets.New(all...).UnsortedList()
		}
		for _, key := range all {
			h.enqueue(key, h.what+" "+event)
		}
	})
}

// safely handles an event of an object. If handle panics, only that event is lost.
func (h *handler[T]) safely(event string, obj T, handle func()) {
	defer func() {
		if value := recover(); value != nil {
			err := &PanicError{Value: value, Stack: debug.Stack()}
			h.loop.tracker.lose(nameOf(obj), h.what+" "+event, err)
			h.logger.Error(err, "Event handler panicked, the event is lost", "event", h.what+" "+event, "object", nameOf(obj), "stack", string(err.Stack))
		}
	}()
	handle()
}

func nameOf[T Object](obj T) cache.ObjectName {
	return cache.NewObjectName(obj.GetNamespace(), obj.GetName())
}
