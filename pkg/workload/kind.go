// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
)

// Adapter describes a kind whose objects manage one Deployment each. All fields must be set. The
// functions are called concurrently, and must not change the object.
type Adapter[T controller.Object] struct {
	// GroupVersionKind is that of the objects.
	GroupVersionKind schema.GroupVersionKind
	// App is the value of the label "app" of the Pods. It differs between kinds.
	App string
	// Spec returns what an object declares for its Deployment.
	Spec func(T) Spec
	// Status returns the part of an object's status that all kinds have, which is written through the
	// pointer if the object is a copy.
	Status func(T) *workloadv1alpha1.Status
}

// Spec is what an object declares for its Deployment.
type Spec struct {
	// DeploymentName is the name of the Deployment, in the namespace of the object.
	DeploymentName string
	// Replicas is the number of replicas, and Image the image of the container. nil and "" leave them
	// to others.
	Replicas *int32
	Image    string
}

// Owner returns an object as the owner of its Deployment. It shares the memory of obj.
func (a Adapter[T]) Owner(obj T) Owner {
	spec, status := a.Spec(obj), a.Status(obj)
	return Owner{
		Object:             obj,
		Kind:               a.GroupVersionKind,
		App:                a.App,
		DeploymentName:     spec.DeploymentName,
		Replicas:           spec.Replicas,
		Image:              spec.Image,
		ObservedGeneration: status.ObservedGeneration,
		HadDeployment:      status.Selector != "",
		Problem:            problemIn(status.Pods),
	}
}

// problemIn returns what the summary says of the Pod that is worst off, "" if nothing is wrong.
func problemIn(pods *workloadv1alpha1.PodSummary) string {
	if pods == nil || len(pods.Problems) == 0 {
		return ""
	}
	p := pods.Problems[0]
	problem := fmt.Sprintf("Pod %q: %s", p.Pod, p.Reason)
	if p.Message != "" {
		problem += ": " + p.Message
	}
	return problem
}

// CachedDeployments returns the options of each controller that reads Deployments. The cache has only parts
// of them: see [trim].
func CachedDeployments(c *controller.Context) []controller.Option {
	groups := sync.OnceValue(c.StatusGroups) // known only after all constructors have run
	return []controller.Option{
		controller.ManagedFields(),
		controller.Transform(func(d *appsv1.Deployment) { trim(d, groups()) }),
	}
}

// Cached returns the option of each controller that reads objects of type T. The cache lacks the annotation of
// kubectl apply, which is as large as the spec.
func Cached[T controller.Object]() controller.Option {
	return controller.Transform(func(obj T) { delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation) })
}
