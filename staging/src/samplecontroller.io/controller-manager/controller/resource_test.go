// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"samplecontroller.io/controller-manager/informers"
)

// custom is the type of a custom resource.
type custom struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Containers []corev1.Container `json:"containers,omitempty"`
}

func (c *custom) DeepCopyObject() runtime.Object {
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	out.Containers = append([]corev1.Container(nil), c.Containers...)
	return &out
}

func TestInvalidKindsAreRejected(t *testing.T) {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	sync := func(context.Context, *Request[*custom]) error { return nil }
	for name, test := range map[string]struct {
		scheme func(*runtime.Scheme)
		want   string
	}{
		"unknown":         {func(*runtime.Scheme) {}, "a-controller reads *controller.custom, which is not registered in the scheme: add it in Program.Scheme"},
		"without a list":  {func(s *runtime.Scheme) { s.AddKnownTypeWithName(version.WithKind("Custom"), &custom{}) }, "with Program.Scheme: the scheme does not know CustomList of example.com/v1: call AddKnownTypes"},
		"without options": {func(s *runtime.Scheme) { addCustom(s, version) }, "the scheme does not know ListOptions of example.com/v1: call AddKnownTypes of the scheme, and metav1.AddToGroupVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, _ := contexts(t, "http://localhost")
			a.shared.Scheme = runtime.NewScheme()
			test.scheme(a.shared.Scheme)
			kind := For[*custom](a)
			Owns[*custom](kind)
			c, err := kind.Reconcile(sync)
			if c != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v, want %q", c, err, test.want)
			}
		})
	}
}

func addCustom(s *runtime.Scheme, version schema.GroupVersion) {
	s.AddKnownTypeWithName(version.WithKind("Custom"), &custom{})
	s.AddKnownTypeWithName(version.WithKind("CustomList"), &metav1.PartialObjectMetadataList{})
}

// A transform may drop fields that the controller compares.
func TestTransformedInformerIsRejected(t *testing.T) {
	a, _, _ := contexts(t, "http://localhost")
	a.shared.Scheme = kubescheme.Scheme
	pods, err := newResource[*corev1.Pod](a, "For", nil)
	if err != nil {
		t.Fatal(err)
	}
	a.shared.Informers = informers.NewFactory()
	source := pods.client("")
	informers.InformerFor[*corev1.Pod](a.Informers(), pods.name, source,
		informers.WithTransform(func(obj any) (any, error) { return obj, nil }))
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "one informer, and a transform may drop what "+
			"another caller reads") {
			t.Errorf("panic %q, want one about the transform", said)
		}
	}()
	For[*corev1.Pod](a)
}

func TestUserError(t *testing.T) {
	cause := errors.New("bad")
	if err := UserError("Bad", cause); !errors.Is(err, cause) || err.Error() != "bad" {
		t.Errorf("%v, want it to wrap the cause and have its text", err)
	}
	if err := UserError("Bad", nil); err != nil {
		t.Errorf("UserError of nil: %v, want nil", err)
	}
}
