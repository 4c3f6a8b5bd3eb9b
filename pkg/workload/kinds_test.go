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
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	librarycontroller "samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/controller/foo"
	"samplecontroller.io/sample-controller-manager/pkg/controller/icecream"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// object is an object of either kind.
type object interface {
	metav1.Object
	runtime.Object
}

// controller is the controller of either kind.
type controller interface {
	Name() string
	Run(context.Context) error
	Sync(context.Context, cache.ObjectName) (time.Duration, error)
	Concerned(*appsv1.Deployment) []cache.ObjectName
	SetClock(clock.PassiveClock)
	Confirmed() int
	Pending(cache.ObjectName) bool
	CatchUp()
	Explain(cache.ObjectName) (librarycontroller.Explanation, error)
}

// kind has the differences between the kinds.
type kind struct {
	schema.GroupVersionKind
	resource string
	app      string // value of the Pods' label
	manager  string // field manager
	new      func(metav1.ObjectMeta, string, *int32) object
	// start sets the fixture's controller and its cache of objects.
	start func(*fixture) error
}

// resources returns the resource of the kind.
func (k kind) resources() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.resource)
}

// example returns a newly created object as the API server returns it.
func (k kind) example() object {
	return k.new(metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, UID: "uid-example", Generation: 1, ResourceVersion: "1"},
		deploymentName, ptr.To[int32](1))
}

// overKinds runs a test for each kind.
func overKinds(t *testing.T, test func(t *testing.T, kind kind)) {
	for _, kind := range []kind{fooKind(), icecreamKind()} {
		t.Run(kind.Kind, func(t *testing.T) { test(t, kind) })
	}
}

func fooKind() kind {
	return kind{
		GroupVersionKind: samplev1alpha1.SchemeGroupVersion.WithKind("Foo"),
		resource:         "foos",
		app:              "nginx",
		manager:          "foo-controller",
		new: func(metadata metav1.ObjectMeta, deploymentName string, replicas *int32) object {
			return &samplev1alpha1.Foo{
				ObjectMeta: metadata,
				Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: replicas},
				Status:     samplev1alpha1.FooStatus{ObservedGeneration: -1},
			}
		},
		start: func(f *fixture) error {
			foos := f.sampleInformers.Samplecontroller().V1alpha1().Foos().TypedInformer()
			controller, err := foo.NewController(f.sample.SamplecontrollerV1alpha1(), options(f, foos))
			f.controller, f.objects = controller, foos.GetIndexer()
			return err
		},
	}
}

func icecreamKind() kind {
	return kind{
		GroupVersionKind: icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream"),
		resource:         "icecreams",
		app:              "icecream",
		manager:          "icecream-controller",
		new: func(metadata metav1.ObjectMeta, deploymentName string, replicas *int32) object {
			return &icecreamv1alpha1.Icecream{
				ObjectMeta: metadata,
				Spec:       icecreamv1alpha1.IcecreamSpec{DeploymentName: deploymentName, Replicas: replicas},
				Status:     icecreamv1alpha1.IcecreamStatus{ObservedGeneration: -1},
			}
		},
		start: func(f *fixture) error {
			icecreams := f.sampleInformers.Icecream().V1alpha1().Icecreams().TypedInformer()
			controller, err := icecream.NewController(f.Context(), f.sample.IcecreamV1alpha1(), options(f, icecreams), f.chain(), f.events)
			f.controller, f.objects = controller, icecreams.GetIndexer()
			return err
		},
	}
}

func options[T workload.Object](f *fixture, objects cache.TypedSharedIndexInformer[T]) workload.Options[T] {
	return workload.Options[T]{
		Objects:     objects,
		Deployments: f.deployments,
		Client:      f.kube.AppsV1(),
		Writes:      f.writes,
		Consistency: &reconcile.ConsistencyStore{},
		Recorder:    f.events,
	}
}

// status points to the parts of the status that all kinds share.
type status struct {
	observedGeneration *int64
	availableReplicas  *int32
	selector           *string
	conditions         *[]metav1.Condition
	pods               **workloadv1alpha1.PodSummary
}

func statusOf(o object) status {
	if foo, ok := o.(*samplev1alpha1.Foo); ok {
		s := &foo.Status
		return status{&s.ObservedGeneration, &s.AvailableReplicas, &s.Selector, &s.Conditions, &s.Pods}
	}
	s := &o.(*icecreamv1alpha1.Icecream).Status
	return status{&s.ObservedGeneration, &s.AvailableReplicas, &s.Selector, &s.Conditions, &s.Pods}
}

// deploymentNameOf returns the object's spec.deploymentName.
func deploymentNameOf(o object) string {
	if foo, ok := o.(*samplev1alpha1.Foo); ok {
		return foo.Spec.DeploymentName
	}
	return o.(*icecreamv1alpha1.Icecream).Spec.DeploymentName
}
