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

// WatchSelf makes the loop enqueue the key of each object of informer that is added, changed or
// deleted. Use it for the kind that the controller reconciles, before [Loop.Run].
func WatchSelf[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T]) {
	Watch(l, informer, func(obj T) []cache.ObjectName { return []cache.ObjectName{nameOf(obj)} })
}

// Watch makes the loop enqueue the keys that depend on an object of informer, such as those of its
// owners. A change enqueues the keys of the old and of the new object, because the owner may have
// changed. Call Watch before [Loop.Run].
//
// keys must be a pure function of the object and of the informers' indexes. It must not call
// the API or take locks, because it runs in the informer's event delivery. If it panics, the event
// is lost: see [Progress].
func Watch[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], keys func(T) []cache.ObjectName) {
	WatchChanges(l, informer, func(T, T) bool { return true }, keys)
}

// WatchChanges is like [Watch], but ignores the events for which concerns returns false. oldObj is
// the zero value for an addition, and newObj for a deletion. concerns must not call the API or wait. It may
// remember what an event shows only once.
func WatchChanges[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], concerns func(oldObj, newObj T) bool,
	keys func(T) []cache.ObjectName) {
	add(l, informer, func(h *handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
		none := *new(T)
		return cache.TypedResourceEventHandlerDetailedFuncs[T]{
			AddFunc: func(obj T, _ bool) {
				h.handle("added", func() bool { return concerns(none, obj) }, keys, obj)
			},
			UpdateFunc: func(oldObj, newObj T) {
				// A resync repeats the object unchanged.
				if oldObj.GetResourceVersion() != newObj.GetResourceVersion() {
					h.handle("changed", func() bool { return concerns(oldObj, newObj) }, keys, newObj, oldObj)
				}
			},
			DeleteFunc: func(deleted cache.DeletedObject[T]) {
				// Without the last state of the object, its keys are unknown. They were enqueued when
				// the object was last seen.
				if obj := deleted.OptionalObj; obj != none {
					h.handle("deleted", func() bool { return concerns(obj, none) }, keys, obj)
				}
			},
		}
	})
}

// add adds a watch of an informer to the loop.
func add[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T],
	funcs func(*handler[T]) cache.TypedResourceEventHandlerDetailedFuncs[T]) {
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

// handle enqueues the keys of the objects of an event, unless it does not concern the loop. It enqueues each
// key once: between two additions, a worker could already sync it. If a function panics, only that event is
// lost.
func (h *handler[T]) handle(event string, concerns func() bool, keys func(T) []cache.ObjectName, objs ...T) {
	event = h.what + " " + event
	defer func() {
		if value := recover(); value != nil {
			key, err := nameOf(objs[0]), &PanicError{Value: value, Stack: debug.Stack()}
			h.loop.tracker.lose(key, event, err)
			h.logger.Error(err, "Event handler panicked, the event is lost", "event", event, "object", key, "stack", string(err.Stack))
		}
	}()
	if !concerns() {
		return
	}
	all := keys(objs[0])
	for _, obj := range objs[1:] {
		all = append(slices.Clone(all), keys(obj)...)
	}
	if len(all) > 1 {
		all = sets.New(all...).UnsortedList()
	}
	for _, key := range all {
		h.enqueue(key, event)
	}
}

func nameOf[T Object](obj T) cache.ObjectName {
	return cache.NewObjectName(obj.GetNamespace(), obj.GetName())
}
