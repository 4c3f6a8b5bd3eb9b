// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// Sundae is a kind of another API group, with the fields of a Foo.
type Sundae struct{ samplev1alpha1.Foo }

// DeepCopyObject implements runtime.Object.
func (s *Sundae) DeepCopyObject() runtime.Object { return &Sundae{*s.Foo.DeepCopy()} }

// SundaeList is a list of Sundaes.
type SundaeList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`

	Items []Sundae `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *SundaeList) DeepCopyObject() runtime.Object {
	c := &SundaeList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, s := range l.Items {
		c.Items = append(c.Items, Sundae{*s.Foo.DeepCopy()})
	}
	return c
}

var sundaeKind = workload.Adapter[*Sundae]{
	GroupVersionKind: schema.GroupVersionKind{Group: "sundaes.example.com", Version: "v1alpha1", Kind: "Sundae"},
	App:              "sundae",
	Spec: func(s *Sundae) workload.Spec {
		return workload.Spec{DeploymentName: s.Spec.DeploymentName, Replicas: s.Spec.Replicas, Image: s.Spec.Image}
	},
	Status: func(s *Sundae) *workloadv1alpha1.Status { return &s.Status.Status },
}

func addSundaes(scheme *runtime.Scheme) error {
	group := sundaeKind.GroupVersionKind.GroupVersion()
	scheme.AddKnownTypeWithName(sundaeKind.GroupVersionKind, &Sundae{})
	scheme.AddKnownTypeWithName(group.WithKind("SundaeList"), &SundaeList{})
	metav1.AddToGroupVersion(scheme, group)
	return samplescheme.AddToScheme(scheme)
}

// TestThirdKindSharesCacheOfDeployments has a kind of a group that the package does not know. Drift of a
// Deployment is only seen if the cache keeps the fields that the kind declares.
func TestThirdKindSharesCacheOfDeployments(t *testing.T) {
	sundaes := controller.Descriptor{Name: "sundae-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			return workload.New(c, sundaeKind).Controller(nil)
		}}
	p := manager.Program{
		Name: "sample-controller-manager", Scheme: addSundaes, Controllers: []controller.Descriptor{foo.Descriptor(), sundaes},
	}
	managertest.Run(t, p, func(t *testing.T, in *managertest.Env) {
		e := env{in, t}
		e.serve()
		e.Create(&Sundae{samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: "a", Replicas: ptr.To[int32](2), Image: "nginx:1.29"},
		}})
		e.pass(time.Second)
		for name, want := range map[string]int32{"a": 2, deploymentName: 1} {
			managertest.Update(e.Env, namespace, name, func(d *appsv1.Deployment) {
				d.Spec.Replicas = ptr.To[int32](5)
				if name == "a" {
					d.Spec.Template.Spec.Containers[0].Image = "httpd"
				}
			})
			e.pass(time.Second)
			d, _ := managertest.Get[*appsv1.Deployment](e.Env, namespace, name)
			if image := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != want || name == "a" && image != "nginx:1.29" {
				t.Errorf("Deployment %s has %d replicas of %s, want %d", name, *d.Spec.Replicas, image, want)
			}
		}
		managertest.Update(e.Env, namespace, "a", ready)
		e.pass(time.Second)
		if s, _ := managertest.Get[*Sundae](e.Env, namespace, "a"); s.Status.AvailableReplicas != 2 ||
			s.Status.Conditions[0].Reason != "Available" {
			t.Errorf("status %+v, want it Available", s.Status)
		}
	})
}
