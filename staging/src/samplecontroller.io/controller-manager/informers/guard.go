// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/tolerant"
)

// guard keeps a transform or index function of the program that panics on an object from
// ending the process.
type guard struct {
	resource string
	item     reflect.Type // of the objects that the source lists
	same     bool         // whether the cache holds objects of that type
	mutex    sync.Mutex
	failures map[call]error
	once     sync.Once // logs the first
}

// call is a function and the key of the object that it gets.
type call struct{ function, key string }

// run calls a function and records whether it panicked or failed on the object.
func (g *guard) run(function string, obj any, f func() error) (err error) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			g.once.Do(func() {
				klog.Background().Error(err, "Function of the program panicked on an object", "function", function, "resource", g.resource, "object", key, "stack", string(debug.Stack()))
			})
		}
		g.mutex.Lock()
		defer g.mutex.Unlock()
		if err != nil {
			g.failures[call{function, key}] = err
		} else if len(g.failures) > 0 {
			delete(g.failures, call{function, key})
		}
	}()
	return f()
}

// transform applies the transforms in turn. If that fails, a placeholder with the metadata of
// the object takes its place, for which [tolerant.DecodeError] returns the reason.
func (g *guard) transform(transforms []cache.TransformFunc) cache.TransformFunc {
	if len(transforms) == 0 {
		return nil
	}
	apply := func(obj any) (result any, err error) {
		cause := decodeError(obj)
		result = obj
		for _, transform := range transforms {
			if result, err = transform(result); err != nil {
				return nil, err
			}
		}
		// The transform of a placeholder is one, even if annotations are dropped. Otherwise it
		// would look like an object with an empty spec.
		if object, ok := result.(metav1.Object); ok && cause != nil {
			mark(object, cause)
		}
		return result, nil
	}
	return func(obj any) (result any, err error) {
		function := "transform"
		if g.isTransformed(obj) {
			function = "second transform" // which does not prove that the first was right
		}
		err = g.run(function, obj, func() (err error) {
			result, err = apply(obj)
			return err
		})
		if err == nil {
			return result, nil
		}
		stand, err := placeholder(obj, err)
		if err != nil {
			return nil, err
		}
		err = g.run("transform of the metadata alone", obj, func() (err error) {
			result, err = apply(stand)
			return err
		})
		if err != nil && g.same {
			return stand, nil
		}
		return result, err
	}
}

// isTransformed reports whether the transform was applied to the object before, and changed
// its type or made it a placeholder.
func (g *guard) isTransformed(obj any) bool {
	return reflect.TypeOf(obj) != g.item || decodeError(obj) != nil
}

// decodeError returns why an object is a placeholder, or nil if it is none.
func decodeError(obj any) error {
	if object, ok := obj.(metav1.Object); ok {
		return tolerant.DecodeError(object)
	}
	return nil
}

// mark marks an object as a placeholder.
func mark(object metav1.Object, cause error) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[tolerant.AnnotationDecodeError] = truncate.Error(cause)
	object.SetAnnotations(annotations)
}

// indexers returns index functions that index nothing for an object on which they fail.
func (g *guard) indexers(indexers cache.Indexers) cache.Indexers {
	guarded := cache.Indexers{}
	for name, index := range indexers {
		guarded[name] = func(obj any) (values []string, _ error) {
			if err := g.run("index "+name, obj, func() (err error) {
				values, err = index(obj)
				return err
			}); err != nil {
				return nil, nil // the informer would panic
			}
			return values, nil
		}
	}
	return guarded
}

// check returns an error if a function fails on an object that is in the cache.
func (g *guard) check(store cache.Store) error {
	g.mutex.Lock()
	failures := maps.Clone(g.failures)
	g.mutex.Unlock() // the cache calls index functions under its own lock
	var lines []string
	for c, err := range failures {
		if _, exists, _ := store.GetByKey(c.key); exists {
			lines = append(lines, fmt.Sprintf("%s fails for %s %s: %v", c.function, g.resource, c.key, err))
			continue
		}
		g.mutex.Lock()
		delete(g.failures, c)
		g.mutex.Unlock()
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return errors.New(truncate.Error(fmt.Errorf("%s (objects concerned: %d)", lines[0], len(lines))))
}

// placeholder returns an object of the same type with only the metadata of obj.
func placeholder(obj any, cause error) (any, error) {
	from, err := meta.Accessor(obj)
	if err != nil {
		return nil, cause
	}
	stand := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
	to, err := meta.Accessor(stand)
	if err != nil {
		return nil, cause
	}
	if o, ok := obj.(runtime.Object); ok {
		stand.(runtime.Object).GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	}
	to.SetName(from.GetName())
	to.SetNamespace(from.GetNamespace())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetLabels(from.GetLabels())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetFinalizers(from.GetFinalizers())
	to.SetAnnotations(from.GetAnnotations())
	mark(to, cause)
	return stand, nil
}
