// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
)

// Env is a test's access to a running program. It changes objects as a user: such requests do
// not need the lead, and are neither recorded nor checked against Rules. A method or function that
// fails ends the test. [Run] and [RunOn] make it.
type Env struct {
	t           testing.TB
	real        bool   // whether the API server is real
	wait        func() // until the bubble is idle
	collect     func() // garbage
	logged      func() string
	scheme      *runtime.Scheme
	user        dynamic.Interface
	created     []func(context.Context)
	config      *restclient.Config // for the program
	recorder    *recorder
	lease       string
	stopProgram context.CancelFunc
	ended       chan struct{}
	err         error                  // of the program, valid after it has ended
	unbuilt     atomic.Pointer[string] // why a constructor failed

	mutex       sync.Mutex
	contexts    []*controller.Context
	context     *controller.Context // of one of the controllers
	controllers []controller.Controller
	resources   map[schema.GroupVersionKind]schema.GroupVersionResource    // that the program reads
	serve       func(schema.GroupVersionKind, schema.GroupVersionResource) // by an API server in memory
}

// Object is an object of a kind of the program or of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Writes returns the writes of the controllers since the last call of Writes, in the order of their
// responses. An example is "create resourcequotas ns/team" or, if the API server rejected the
// write, "patch foos/status.example.com ns/a: Conflict". Events and writes that the library did not
// send are not included.
func (e *Env) Writes() []string { return e.recorder.take(&e.recorder.writes) }

// Events returns the Events of the controllers since the last call of Events, such as "Warning
// BadData no number": type, reason and message. A repeated Event is returned again.
func (e *Env) Events() []string { return e.recorder.take(&e.recorder.events) }

// BeforeWrite sets a function that is called before each write of a controller is sent, concurrently
// by their workers. write has the form of [Env.Writes]. If f returns an API error, such as
// apierrors.NewConflict, that is the API server's response; any other is like one of the network. Use
// it to change the object or lose the lead just before a write. nil removes the function.
func (e *Env) BeforeWrite(f func(write string, r *http.Request) error) { e.recorder.setBefore(f) }

// Create creates objects, including their statuses. It creates their Namespaces that do not exist.
func (e *Env) Create(objects ...Object) {
	e.t.Helper()
	for _, object := range objects {
		o, client := e.untyped(object)
		if o.GetNamespace() != "" {
			e.createNamespace(o.GetNamespace())
		}
		status, _ := o.Object["status"].(map[string]any)
		if field := reflect.ValueOf(object).Elem().FieldByName("Status"); field.IsValid() && field.IsZero() {
			status = nil // its fields are there only because they lack omitempty
		}
		delete(o.Object, "status")
		created, err := client.Create(e.t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			e.t.Fatalf("creating %s %s: %v", o.GetKind(), nameOf(o), err)
		}
		e.created = append(e.created, func(ctx context.Context) {
			client.Delete(ctx, created.GetName(),
				metav1.DeleteOptions{})
		})
		if len(status) > 0 {
			if err := setStatus(e.t.Context(), client, o.GetName(), status); err != nil {
				e.t.Fatalf("writing the status of %s %s: %v", o.GetKind(), nameOf(o), err)
			}
		}
	}
}

// setStatus replaces a status, whatever a controller has written to the object since it was read.
func setStatus(ctx context.Context, client dynamic.ResourceInterface, name string, status any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/status", "value": status}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// Delete deletes the objects with the names of the given ones, which must exist. An object with
// finalizers is only marked as being deleted.
func (e *Env) Delete(objects ...Object) {
	e.t.Helper()
	for _, object := range objects {
		o, client := e.untyped(object)
		if err := client.Delete(e.t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
			e.t.Fatalf("deleting %s %s: %v", o.GetKind(), nameOf(o), err)
		}
	}
}

// CollectGarbage does what other controllers of Kubernetes do after a deletion: it deletes objects
// whose owners no longer exist, and what a deleted Namespace contains. It ends deletions in the
// foreground, and those of Namespaces and PersistentVolumeClaims. On a real API server it does
// nothing, because those controllers may run.
func (e *Env) CollectGarbage() { e.collect() }

// Get returns the object of the type with the name, and false if there is none. For a
// cluster-scoped object, namespace is empty.
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

// Update changes the object with that name, which must exist, and its status if change modifies it.
func Update[T Object](e *Env, namespace, name string, change func(T)) {
	e.t.Helper()
	object, ok := Get[T](e, namespace, name)
	if !ok {
		e.t.Fatalf("updating %T %s/%s: not found", object, namespace, name)
	}
	before, client := e.untyped(object)
	change(object)
	o, _ := e.untyped(object)
	_, err := client.Update(e.t.Context(), o, metav1.UpdateOptions{})
	if err == nil && !equality.Semantic.DeepEqual(before.Object["status"], o.Object["status"]) {
		err = setStatus(e.t.Context(), client, name, o.Object["status"])
	}
	if err != nil {
		e.t.Fatalf("updating %T %s/%s: %v", object, namespace, name, err)
	}
}

func newOf[T Object]() T {
	object, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return object
}

// untyped returns the unstructured object, and the user's client of its resource.
func (e *Env) untyped(object Object) (*unstructured.Unstructured, dynamic.ResourceInterface) {
	e.t.Helper()
	kinds, _, err := e.scheme.ObjectKinds(object)
	if err != nil {
		e.t.Fatalf("%T: %v: add its kind in Program.Scheme", object, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		e.t.Fatalf("%T: %v", object, err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(kinds[0])
	return o, e.client(e.resourceOf(kinds[0]), o.GetNamespace())
}

// resourceOf returns the resource of a kind. The plural is the one with which the program reads the
// kind, if it does.
func (e *Env) resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	resource, known := e.resources[kind]
	if !known {
		resource, _ = meta.UnsafeGuessKindToResource(kind)
	}
	return resource
}

// learn notes the resources of the kinds that the program reads, because plurals may be irregular.
// Callers hold the mutex.
func (e *Env) learn(read *informers.Factory) {
	for resource, example := range read.Examples() {
		kinds, _, _ := e.scheme.ObjectKinds(example)
		for _, kind := range kinds {
			if kind.GroupVersion() == resource.GroupVersion() {
				e.resources[kind] = resource
				e.serve(kind, resource)
			}
		}
	}
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

// createNamespace creates a Namespace if it does not exist.
func (e *Env) createNamespace(name string) {
	e.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetName(name)
	_, err := e.user.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(e.t.Context(), o,
		metav1.CreateOptions{})
	switch {
	case err == nil:
		e.wait() // so that the program knows it before its objects, which would wait for it
	case !apierrors.IsAlreadyExists(err):
		e.t.Fatalf("creating namespace %s: %v", name, err)
	}
}

// deleteCreated deletes the remaining objects that the test has created.
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
