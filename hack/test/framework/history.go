// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// History records the events of a watch on one resource in one namespace, in the order of the
// API server. A state that is not in the history did not exist.
type History[T metav1.Object] struct {
	mutex   sync.Mutex
	changes []change[T]
}

type change[T metav1.Object] struct {
	Object  T
	deleted bool
}

// Record starts a history with the existing objects.
func Record[T metav1.Object](t *testing.T, start func(context.Context, metav1.ListOptions) (watch.Interface,
	error)) *History[T] {
	t.Helper()
	watcher, err := start(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &History[T]{}
	ctx, stop := context.WithCancel(t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		for h.follow(watcher) && ctx.Err() == nil {
			// The API server may end a watch at any time. The next one continues where it
			// ended.
			next := metav1.ListOptions{}
			if told := h.Changes(); len(told) > 0 {
				next.ResourceVersion = told[len(told)-1].Object.GetResourceVersion()
			}
			if watcher, err = start(ctx, next); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		recording.Wait()
	})
	return h
}

// follow records the events of a watch until it ends. It returns false after an error event:
// the history then ends, and nobody is notified.
func (h *History[T]) follow(watcher watch.Interface) bool {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(T)
		if !ok {
			return false
		}
		h.mutex.Lock()
		h.changes = append(h.changes, change[T]{object, event.Type == watch.Deleted})
		h.mutex.Unlock()
	}
	return true
}

// Changes returns all changes so far.
func (h *History[T]) Changes() []change[T] {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.changes)
}

// present returns the objects that existed after the last of the changes.
func present[T metav1.Object](changes []change[T]) map[types.UID]T {
	objects := map[types.UID]T{}
	for _, c := range changes {
		objects[c.Object.GetUID()] = c.Object
		if c.deleted {
			delete(objects, c.Object.GetUID())
		}
	}
	return objects
}

// WaitFor waits until the history reaches a state in which the existing objects satisfy check.
func (h *History[T]) WaitFor(t *testing.T, what string, check func(objects []T) error) {
	t.Helper()
	clustertest.WaitUntil(t, what, func(context.Context) error {
		return check(slices.Collect(maps.Values(present(h.Changes()))))
	})
}

// Watch returns a function that starts a watch on the kind's objects in a namespace.
func (k Kind) Watch(ns string) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		watcher, err := k.In(ns).Watch(ctx, options)
		if err != nil {
			return nil, err
		}
		return watch.Filter(watcher, func(event watch.Event) (watch.Event, bool) {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				if foo, err := k.Read(object); err == nil { // the recorder reports objects that cannot be decoded
					event.Object = foo
				}
			}
			return event, true
		}), nil
	}
}
