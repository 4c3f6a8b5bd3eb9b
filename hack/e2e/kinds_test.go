// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// kind is one of the kinds whose objects keep a Deployment each. What is tested of
// that holds for both, and is tested over both. An object of either is read as a Foo,
// since an Icecream has all that a Foo has.
type kind struct {
	schema.GroupVersionKind
	resource   string // foos
	singular   string // foo
	app        string // the label of its Pods
	controller string // its user agent and field manager
}

var (
	foos = kind{
		GroupVersionKind: samplev1alpha1.SchemeGroupVersion.WithKind("Foo"),
		resource:         "foos", singular: "foo", app: "nginx", controller: "foo-controller",
	}
	icecreams = kind{
		GroupVersionKind: icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream"),
		resource:         "icecreams", singular: "icecream", app: "icecream", controller: "icecream-controller",
	}
	kinds = []kind{foos, icecreams}
)

// other returns the other kind.
func (k kind) other() kind {
	if k == foos {
		return icecreams
	}
	return foos
}

// overKinds runs a test for each kind, side by side, and returns when all have ended.
func overKinds(t *testing.T, test func(t *testing.T, k kind)) {
	t.Run("over kinds", func(t *testing.T) {
		for _, k := range kinds {
			t.Run(k.Kind, func(t *testing.T) {
				t.Parallel()
				test(t, k)
			})
		}
	})
}

// in is the client for the objects of the kind in a namespace.
func (k kind) in(ns string) dynamic.ResourceInterface {
	return anyKind.Resource(k.GroupVersion().WithResource(k.resource)).Namespace(ns)
}

// read reads an object of the kind as a Foo.
func (k kind) read(object *unstructured.Unstructured) (*samplev1alpha1.Foo, error) {
	foo := &samplev1alpha1.Foo{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, foo); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", k.Kind, object.GetName(), err)
	}
	return foo, nil
}

func (k kind) get(ctx context.Context, ns, name string) (*samplev1alpha1.Foo, error) {
	object, err := k.in(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return k.read(object)
}

// mustGet is get for an object that there must be.
func (k kind) mustGet(t *testing.T, ns, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := k.get(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// watch returns what starts a watch on the objects of the kind in a namespace.
func (k kind) watch(ns string) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		watcher, err := k.in(ns).Watch(ctx, options)
		if err != nil {
			return nil, err
		}
		return watch.Filter(watcher, func(event watch.Event) (watch.Event, bool) {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				if foo, err := k.read(object); err == nil { // whoever records tells that it is none
					event.Object = foo
				}
			}
			return event, true
		}), nil
	}
}

// tryDeclare creates an object of the kind.
func (k kind) tryDeclare(ctx context.Context, ns, name string, spec samplev1alpha1.FooSpec) (*samplev1alpha1.Foo, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	object.SetGroupVersionKind(k.GroupVersionKind)
	object.SetName(name)
	if object, err = k.in(ns).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return k.read(object)
}

func (k kind) declare(t *testing.T, ns, name string, spec samplev1alpha1.FooSpec) *samplev1alpha1.Foo {
	t.Helper()
	object, err := k.tryDeclare(t.Context(), ns, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// create makes an object and its namesake Deployment wanted.
func (k kind) create(t *testing.T, ns, name string, replicas int32) {
	t.Helper()
	k.declare(t, ns, name, samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas})
}

// createNaming creates an object that wants one replica of the named Deployment.
func (k kind) createNaming(t *testing.T, ns, name, deployment string) {
	t.Helper()
	k.declare(t, ns, name, naming(deployment))
}

func naming(deployment string) samplev1alpha1.FooSpec {
	return samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: ptr.To[int32](1)}
}

// manifest returns a YAML document with an object of the kind; with 0 replicas they
// are left out.
func (k kind) manifest(name, deployment string, replicas int) string {
	manifest := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  deploymentName: %s\n", k.GroupVersion(), k.Kind, name, deployment)
	if replicas > 0 {
		manifest += fmt.Sprintf("  replicas: %d\n", replicas)
	}
	return manifest
}

// tryPatch applies a JSON merge patch.
func (k kind) tryPatch(ctx context.Context, ns, name, patch string) error {
	_, err := k.in(ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (k kind) patch(t *testing.T, ns, name, patch string) {
	t.Helper()
	if err := k.tryPatch(t.Context(), ns, name, patch); err != nil {
		t.Fatal(err)
	}
}

// touch changes an object in a way that asks for nothing.
func (k kind) touch(ctx context.Context, ns, name, value string) error {
	return k.tryPatch(ctx, ns, name, fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, value))
}
