// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/controller"
)

// Env is what a test sees of a program that runs. What it does to objects it does as a user: it
// is not bound to the lead, and neither counted nor checked. Each method that cannot do its work
// ends the test.
type Env struct {
	t           testing.TB
	real        bool   // the API server is
	wait        func() // until nothing happens without time passing
	scheme      *runtime.Scheme
	user        dynamic.Interface
	created     []func(context.Context)
	config      *restclient.Config // of the program
	recorder    *recorder
	lease       string
	stopProgram context.CancelFunc
	ended       chan struct{}
	err         error // of the program, once it has ended

	mutex       sync.Mutex
	context     *controller.Context // of any controller
	controllers []controller.Controller
}

// Object is an object of a kind that the program or Kubernetes has.
type Object interface {
	metav1.Object
	runtime.Object
}

// Writes returns what the controllers wrote since the last call, in the order of the answers:
// "create resourcequotas ns/team", or, if the API server refused it, "patch foos/status.example.com
// ns/a: Conflict". Events and writes that were not sent are not among them.
func (e *Env) Writes() []string { return e.recorder.take(&e.recorder.writes) }

// Events returns the Events of the controllers that were written since the last call:
// "Warning BadData no number". One that is repeated is returned again.
func (e *Env) Events() []string { return e.recorder.take(&e.recorder.events) }

// BeforeWrite makes the program call f before each write of a controller is sent; write is as in
// [Env.Writes]. If f returns an error, that is the API server's answer. It is the moment for a
// test to change the object, or to lose the lead. nil: nothing is called any more.
func (e *Env) BeforeWrite(f func(write string, r *http.Request) error) { e.recorder.setBefore(f) }

// Create creates objects, with their statuses.
func (e *Env) Create(objects ...Object) {
	e.t.Helper()
	for _, object := range objects {
		o, client := e.untyped(object)
		if e.real && o.GetNamespace() != "" {
			e.createNamespace(o.GetNamespace())
		}
		status := o.Object["status"]
		delete(o.Object, "status")
		created, err := client.Create(e.t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			e.t.Fatalf("creating %s %s: %v", o.GetKind(), nameOf(o), err)
		}
		e.created = append(e.created, func(ctx context.Context) { client.Delete(ctx, created.GetName(), metav1.DeleteOptions{}) })
		if s, _ := status.(map[string]any); len(s) > 0 {
			created.Object["status"] = status
			if _, err := client.UpdateStatus(e.t.Context(), created, metav1.UpdateOptions{}); err != nil {
				e.t.Fatalf("writing the status of %s %s: %v", o.GetKind(), nameOf(o), err)
			}
		}
	}
}

// Delete deletes objects by their names.
func (e *Env) Delete(objects ...Object) {
	e.t.Helper()
	for _, object := range objects {
		o, client := e.untyped(object)
		if err := client.Delete(e.t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
			e.t.Fatalf("deleting %s %s: %v", o.GetKind(), nameOf(o), err)
		}
	}
}

// Get returns the object of the type that has the name, and false if there is none. A
// cluster-scoped object has no namespace.
func Get[T Object](e *Env, namespace, name string) (T, bool) {
	e.t.Helper()
	object := newOf[T]()
	object.SetNamespace(namespace)
	_, client := e.untyped(object)
	o, err := client.Get(e.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		e.t.Fatalf("reading %T %s/%s: %v", object, namespace, name, err)
	}
	return object, err == nil
}

// Update changes an object, and its status if change changes that.
func Update[T Object](e *Env, namespace, name string, change func(T)) {
	e.t.Helper()
	object, ok := Get[T](e, namespace, name)
	if !ok {
		e.t.Fatalf("updating %T %s/%s: there is none", object, namespace, name)
	}
	before, client := e.untyped(object)
	change(object)
	o, _ := e.untyped(object)
	written, err := client.Update(e.t.Context(), o, metav1.UpdateOptions{})
	if err == nil && !equality.Semantic.DeepEqual(before.Object["status"], o.Object["status"]) {
		written.Object["status"] = o.Object["status"]
		_, err = client.UpdateStatus(e.t.Context(), written, metav1.UpdateOptions{})
	}
	if err != nil {
		e.t.Fatalf("updating %T %s/%s: %v", object, namespace, name, err)
	}
}

func newOf[T Object]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}

// untyped returns the object as the API has it, and the user's client of its resource.
func (e *Env) untyped(object Object) (*unstructured.Unstructured, dynamic.ResourceInterface) {
	e.t.Helper()
	kinds, _, err := e.scheme.ObjectKinds(object)
	if err != nil {
		e.t.Fatalf("%T: %v: let Program.Scheme add its kind", object, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		e.t.Fatalf("%T: %v", object, err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(kinds[0])
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return o, e.client(resource, o.GetNamespace())
}

func (e *Env) client(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return e.user.Resource(resource)
	}
	return e.user.Resource(resource).Namespace(namespace)
}

func nameOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// createNamespace creates a namespace unless there is one of the name.
func (e *Env) createNamespace(name string) {
	e.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetName(name)
	_, err := e.user.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(e.t.Context(), o, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		e.t.Fatalf("creating namespace %s: %v", name, err)
	}
}

// deleteCreated deletes what the test has created and is still there.
func (e *Env) deleteCreated() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e.created = append(e.created, func(ctx context.Context) {
		e.client(leases, leaseNamespace).Delete(ctx, e.lease, metav1.DeleteOptions{})
	})
	for _, remove := range e.created {
		remove(ctx)
	}
}
