// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"reflect"
	"runtime/debug"

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
	add(l, informer, func(ctx context.Context, e events, enqueue enqueueFunc) (registered, error) {
		return register(ctx, informer, cache.TypedResourceEventHandlerDetailedFuncs[T]{
			AddFunc: func(obj T, _ bool) { enqueue(nameOf(obj), obj.GetResourceVersion(), e.added) },
			UpdateFunc: func(oldObj, newObj T) {
				if delivers(l, oldObj, newObj) {
					enqueue(nameOf(newObj), newObj.GetResourceVersion(), e.changed)
				}
			},
			DeleteFunc: func(deleted cache.DeletedObject[T]) {
				enqueue(deleted.GetObjectName(), lastVersion(deleted), e.deleted)
			},
		})
	})
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
	add(l, informer, func(ctx context.Context, e events, enqueue enqueueFunc) (registered, error) {
		// Enqueue each key once: between two additions, a worker could already sync it.
		enqueueAll := func(version, trigger string, objs ...T) {
			all := sets.New[cache.ObjectName]()
			for _, obj := range objs {
				all.Insert(keys(obj)...)
			}
			for key := range all {
				enqueue(key, version, trigger)
			}
		}
		return register(ctx, informer, cache.TypedResourceEventHandlerDetailedFuncs[T]{
			AddFunc: func(obj T, _ bool) {
				l.safely(ctx, e.added, nameOf(obj), func() { enqueueAll(obj.GetResourceVersion(), e.added, obj) })
			},
			UpdateFunc: func(oldObj, newObj T) {
				l.safely(ctx, e.changed, nameOf(newObj), func() {
					if delivers(l, oldObj, newObj) && concerns(oldObj, newObj) {
						enqueueAll(newObj.GetResourceVersion(), e.changed, oldObj, newObj)
					}
				})
			},
			DeleteFunc: func(deleted cache.DeletedObject[T]) {
				// Without the last state, the keys are unknown. They were enqueued when the
				// object was last seen.
				if none := *new(T); deleted.OptionalObj != none {
					l.safely(ctx, e.deleted, nameOf(deleted.OptionalObj), func() { enqueueAll(lastVersion(deleted), e.deleted, deleted.OptionalObj) })
				}
			},
		})
	})
}

// WatchDeletions enqueues the keys that keys returns for a deleted object, in its last known
// state. keys may remember what is known only at that time.
func WatchDeletions[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], keys func(T) []cache.ObjectName) {
	add(l, informer, func(ctx context.Context, e events, enqueue enqueueFunc) (registered, error) {
		return register(ctx, informer, cache.TypedResourceEventHandlerDetailedFuncs[T]{
			DeleteFunc: func(deleted cache.DeletedObject[T]) {
				if none := *new(T); deleted.OptionalObj != none {
					l.safely(ctx, e.deleted, nameOf(deleted.OptionalObj), func() {
						for _, key := range keys(deleted.OptionalObj) {
							enqueue(key, lastVersion(deleted), e.deleted)
						}
					})
				}
			},
		})
	})
}

// events are the names of an informer's events in triggers and logs.
type events struct {
	added, changed, deleted string
}

// add adds a watch of an informer to the loop.
func add[T Object](l *Loop, informer cache.TypedSharedIndexInformer[T], addHandler func(context.Context, events, enqueueFunc) (registered, error)) {
	l.watches = append(l.watches, watch{
		store: informer.GetStore(),
		add: func(ctx context.Context, enqueue enqueueFunc) (registered, error) {
			what := reflect.TypeFor[T]().String()
			if l.sources != nil {
				what = l.sources.Resource(informer.GetStore())
			}
			return addHandler(ctx, events{what + " added", what + " changed", what + " deleted"}, enqueue)
		},
	})
}

// safely handles an event of an object. If handle panics, only that event is lost.
func (l *Loop) safely(ctx context.Context, event string, name cache.ObjectName, handle func()) {
	defer func() {
		if value := recover(); value != nil {
			err := &PanicError{Value: value, Stack: debug.Stack()}
			l.tracker.lose(name, event, err)
			klog.FromContext(ctx).Error(err, "Event handler panicked, the event is lost", "event", event, "object", name, "stack", string(err.Stack))
		}
	}()
	handle()
}

// delivers returns whether an update is enqueued. A resync repeats the object unchanged, and
// is enqueued only with [WithResyncs].
func delivers[T Object](l *Loop, oldObj, newObj T) bool {
	return l.resyncs || oldObj.GetResourceVersion() != newObj.GetResourceVersion()
}

// lastVersion returns the last known resourceVersion of a deleted object, or "".
func lastVersion[T Object](deleted cache.DeletedObject[T]) string {
	if none := *new(T); deleted.OptionalObj == none {
		return ""
	}
	return deleted.OptionalObj.GetResourceVersion()
}

func nameOf[T Object](obj T) cache.ObjectName {
	return cache.NewObjectName(obj.GetNamespace(), obj.GetName())
}

// register adds a handler to an informer.
func register[T Object](ctx context.Context, informer cache.TypedSharedIndexInformer[T], handler cache.TypedResourceEventHandler[T]) (registered, error) {
	logger := klog.FromContext(ctx)
	registration, err := informer.AddTypedEventHandler(handler, cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return registered{}, err
	}
	return registered{
		synced: []cache.DoneChecker{informer.HasSyncedChecker(), registration.HasSyncedChecker()},
		remove: func() error { return cache.ShutDownEventHandler(informer, registration) },
	}, nil
}
