// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"
)

var icecream = icecreamv1alpha1.SchemeGroupVersion.WithKind("Icecream")

// cluster is an API server with a program that has two controllers with chains.
type cluster struct {
	*testing.T
	*managertest.Env
	chains      map[string]*Chain
	deployments *controller.Reader[*appsv1.Deployment]
	enqueued    *atomic.Int32 // objects of the first controller
	namespace   string
}

// inCluster runs a test. The second controller is concerned only if a Pod changes its place.
func inCluster(t *testing.T, test func(*cluster)) {
	c := &cluster{chains: map[string]*Chain{}, enqueued: &atomic.Int32{}, namespace: "default"}
	newController := func(changes func(before, now *Record) bool) controller.Constructor {
		return func(_ context.Context, made *controller.Context) (controller.Controller, error) {
			b := controller.For[*icecreamv1alpha1.Icecream](made)
			c.deployments = controller.Watch(b, func(*appsv1.Deployment) []cache.ObjectName { return nil }, DeploymentIndex())
			c.chains[made.Name()] = Watch(b, icecream, c.deployments.Get, Filter{Changes: changes})
			return b.Reconcile(func(_ context.Context, r *controller.Request[*icecreamv1alpha1.Icecream]) error {
				if changes == nil {
					c.enqueued.Add(1)
				}
				return nil
			})
		}
	}
	place := func(before, now *Record) bool {
		return before == nil || now == nil || !before.Facts().SamePlace(now.Facts())
	}
	program := manager.Program{
		Name: "pods-manager", Port: 10290, Scheme: samplescheme.AddToScheme, Description: "Reads Pods.",
		Controllers: []controller.Descriptor{
			{Name: "a-controller", Workers: 1, New: newController(nil)},
			{Name: "b-controller", Workers: 1, New: newController(place)},
		},
	}
	managertest.Run(t, program, func(t *testing.T, e *managertest.Env) {
		c.T, c.Env = t, e
		test(c)
	})
}

// in returns the cluster for objects of another namespace.
func (c *cluster) in(namespace string) *cluster {
	other := *c
	other.namespace = namespace
	return &other
}

// create creates an object with owners, and returns the controller reference to it.
func create[T managertest.Object](c *cluster, kind schema.GroupVersionKind, object T, name string,
	owners []metav1.OwnerReference) metav1.OwnerReference {
	c.Helper()
	object.SetNamespace(c.namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{Selector: "example"})
	object.SetOwnerReferences(owners)
	c.Create(object)
	created, _ := managertest.Get[T](c.Env, c.namespace, name)
	return *metav1.NewControllerRef(created, kind)
}

func (c *cluster) icecream(name string) metav1.OwnerReference {
	return create(c, icecream, &icecreamv1alpha1.Icecream{}, name, nil)
}

func (c *cluster) deployment(name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	return create(c, appsv1.SchemeGroupVersion.WithKind("Deployment"), &appsv1.Deployment{}, name, owners)
}

func (c *cluster) replicaSet(name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	return create(c, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &appsv1.ReplicaSet{}, name, owners)
}

func (c *cluster) pod(name string, owners ...metav1.OwnerReference) metav1.OwnerReference {
	return create(c, corev1.SchemeGroupVersion.WithKind("Pod"), &corev1.Pod{}, name, owners)
}

// notController returns the reference as that of an owner that is not the controller.
func notController(owner metav1.OwnerReference) metav1.OwnerReference {
	owner.Controller = nil
	return owner
}

// withUID returns the reference to another object of the same name.
func withUID(owner metav1.OwnerReference, uid types.UID) metav1.OwnerReference {
	owner.UID = uid
	return owner
}
