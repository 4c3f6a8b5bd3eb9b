// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// Clients provides a client for objects of any kind. [Shared] implements it.
type Clients interface{ Dynamic() dynamic.Interface }

// Objects accesses the objects of a kind that owns Deployments: Foos or Icecreams. They are
// read and written as Foos, because an Icecream has all fields of a Foo. Objects values are
// comparable.
type Objects struct {
	schema.GroupVersionKind
	Resource   string // foos
	Singular   string // foo
	App        string // the label of their Pods
	Controller string // its user agent and field manager

	clients Clients
}

// Foos returns the Foos of the clients' cluster.
func Foos(clients Clients) Objects {
	return Objects{
		GroupVersionKind: samplev1alpha1.SchemeGroupVersion.WithKind("Foo"),
		Resource:         "foos", Singular: "foo", App: "nginx", Controller: "foo-controller",
		clients: clients,
	}
}

// Icecreams returns the Icecreams of the clients' cluster.
func Icecreams(clients Clients) Objects {
	return Objects{
		GroupVersionKind: icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream"),
		Resource:         "icecreams", Singular: "icecream", App: "icecream", Controller: "icecream-controller",
		clients: clients,
	}
}

// CRD returns the name of the CRD.
func (o Objects) CRD() string { return o.Resource + "." + o.Group }

// May returns a right on the objects, or on a subresource such as "/status".
func (o Objects) May(verb, subresource string) Right {
	return Right{Verb: verb, Group: o.Group, Resource: o.Resource + subresource}
}

// In returns a client for the objects in a namespace.
func (o Objects) In(ns string) dynamic.ResourceInterface {
	return o.clients.Dynamic().Resource(o.GroupVersion().WithResource(o.Resource)).Namespace(ns)
}

// Read decodes an object as a Foo.
func (o Objects) Read(object *unstructured.Unstructured) (*samplev1alpha1.Foo, error) {
	foo := &samplev1alpha1.Foo{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, foo); err != nil {
		return nil, fmt.Errorf("decoding %s %q: %w", o.Kind, object.GetName(), err)
	}
	return foo, nil
}

// Get returns an object.
func (o Objects) Get(ctx context.Context, ns, name string) (*samplev1alpha1.Foo, error) {
	object, err := o.In(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.Read(object)
}

// MustGet is Get for an object that must exist.
func (o Objects) MustGet(t *testing.T, ns, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := o.Get(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// New returns a new, not yet stored, object that wants replicas of a Deployment of its own
// name.
func (o Objects) New(name string, replicas int32) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.GroupVersion().String(), Kind: o.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &replicas},
	}
}

// TryStore creates an object.
func (o Objects) TryStore(ctx context.Context, ns string, object *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	created, err := o.In(ns).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return o.Read(created)
}

// Store is TryStore for an object that the API server must accept.
func (o Objects) Store(t *testing.T, ns string, object *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	created, err := o.TryStore(t.Context(), ns, object)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// Create creates an object that wants replicas of a Deployment of its own name.
func (o Objects) Create(t *testing.T, ns, name string, replicas int32) *samplev1alpha1.Foo {
	t.Helper()
	return o.Store(t, ns, o.New(name, replicas))
}

// TryPatch applies a JSON merge patch.
func (o Objects) TryPatch(ctx context.Context, ns, name, patch string, subresources ...string) error {
	_, err := o.In(ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// Patch is TryPatch for a patch that the API server must accept.
func (o Objects) Patch(t *testing.T, ns, name, patch string) {
	t.Helper()
	if err := o.TryPatch(t.Context(), ns, name, patch); err != nil {
		t.Fatal(err)
	}
}

// Touch changes an annotation, which requires no action of the controller.
func (o Objects) Touch(ctx context.Context, ns, name, value string) error {
	return o.TryPatch(ctx, ns, name, fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, value))
}

// DryRun tries a write. The call has the form of the audit log, "patch foos/status". A patch
// is a JSON merge patch.
func DryRun(ctx context.Context, client rest.Interface, call, path, body string) error {
	return send(ctx, client, call, path, body, metav1.DryRunAll)
}

// Write is like [DryRun], but the write is real.
func Write(ctx context.Context, client rest.Interface, call, path, body string) error {
	return send(ctx, client, call, path, body)
}

func send(ctx context.Context, client rest.Interface, call, path, body string, dryRun ...string) error {
	verb, _, _ := strings.Cut(call, " ")
	method := map[string]string{"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}[verb]
	request := client.Verb(method).AbsPath(path).Body([]byte(body))
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	if verb == "patch" {
		request.SetHeader("Content-Type", string(types.MergePatchType))
	}
	return request.Do(ctx).Error()
}
