// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/debug"
)

// Watcher is what [Cluster.Watch] calls, from several goroutines.
type Watcher struct {
	// Changed is called with each object, and again whenever it changes. Deleted is called when it is gone.
	Changed, Deleted func(Object)
	// Complete is called once, when Changed was called with all objects that there were.
	Complete func()
	// Heard is called when the API server answers or sends an event or a bookmark: about once a minute, even if nothing
	// changes. Failed is called when it refuses or cannot be reached. The watch goes on.
	Heard  func()
	Failed func(error)
}

// Watch follows the objects of a kind, in one namespace or, if it is empty, in all. It returns when the context ends.
func (c *Cluster) Watch(ctx context.Context, kind Kind, namespace string, w Watcher) error {
	// Clients in tests cannot list by a watch.
	source := cache.ToListWatcherWithWatchListSemantics(c.listWatch(kind, namespace, w), c.objects)
	informer := cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, nil)
	// Of 10,000 objects, the specs and managed fields would take most of the memory.
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	// The default would write to the terminal what Failed reports.
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return err
	}
	changed := func(object any) { w.Changed(NewObject(kind, object.(*unstructured.Unstructured))) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
				object = last.Obj
			}
			w.Deleted(NewObject(kind, object.(*unstructured.Unstructured)))
		},
	})
	if err != nil {
		return err
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.Complete()
		}
	})
	informer.RunWithContext(ctx)
	waiting.Wait()
	return nil
}

// listWatch reports to the Watcher how the requests of an informer end. The informer itself does not report when it
// cannot connect for a watch.
func (c *Cluster) listWatch(kind Kind, namespace string, w Watcher) *cache.ListWatch {
	resource := c.objects.Resource(kind.Resource).Namespace(namespace)
	report := func(err error) {
		if err == nil {
			w.Heard()
		} else {
			w.Failed(shortened{err})
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, options)
			report(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := resource.Watch(ctx, options)
			report(err)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				if event.Type != watch.Error {
					w.Heard()
				}
				return event, true
			}), nil
		},
	}
}

// trim keeps what [NewObject] reads.
func trim(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("not an unstructured object")
	}
	trimmed := &unstructured.Unstructured{Object: map[string]any{"status": u.Object["status"]}}
	trimmed.SetNamespace(u.GetNamespace())
	trimmed.SetName(u.GetName())
	trimmed.SetUID(u.GetUID())
	trimmed.SetResourceVersion(u.GetResourceVersion())
	trimmed.SetGeneration(u.GetGeneration())
	trimmed.SetCreationTimestamp(u.GetCreationTimestamp())
	return trimmed, nil
}

// shortened is an error whose text is short.
type shortened struct{ error }

func (e shortened) Error() string { return debug.Short(e.error.Error()) }
func (e shortened) Unwrap() error { return e.error }
