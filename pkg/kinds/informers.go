// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// Foos returns the informer of Foos.
func Foos(c *controller.Context) (cache.TypedSharedIndexInformer[*samplev1alpha1.Foo], error) {
	client, err := FooClient(c.ReadConfig())
	if err != nil {
		return nil, err
	}
	return informers.InformerFor[*samplev1alpha1.Foo](c.Informers(), samplev1alpha1.SchemeGroupVersion.WithResource("foos"), client.Foos(c.Namespace()),
		informers.WithTransform(trim)), nil
}

// Icecreams returns the informer of Icecreams.
func Icecreams(c *controller.Context) (cache.TypedSharedIndexInformer[*icecreamv1alpha1.Icecream], error) {
	client, err := IcecreamClient(c.ReadConfig())
	if err != nil {
		return nil, err
	}
	return informers.InformerFor[*icecreamv1alpha1.Icecream](c.Informers(), icecreamv1alpha1.SchemeGroupVersion.WithResource("icecreams"), client.Icecreams(c.Namespace()),
		informers.WithTransform(trim)), nil
}

// Deployments returns the informer of Deployments. It caches only parts of them: see
// [workload.Trim].
func Deployments(c *controller.Context) (cache.TypedSharedIndexInformer[*appsv1.Deployment], error) {
	client, err := appsv1client.NewForConfig(c.ReadConfig())
	if err != nil {
		return nil, fmt.Errorf("creating client for Deployments: %w", err)
	}
	return deployments(c.Informers(), client.Deployments(c.Namespace()), c.StatusGroups()), nil
}

func deployments(handle *informers.Factory, client appsv1client.DeploymentInterface, groups sets.Set[string]) cache.TypedSharedIndexInformer[*appsv1.Deployment] {
	return informers.InformerFor[*appsv1.Deployment](handle, appsv1.SchemeGroupVersion.WithResource("deployments"), client,
		informers.WithManagedFields(true), informers.WithTransform(trimDeployment(groups)))
}

func trimDeployment(groups sets.Set[string]) cache.TransformFunc {
	return func(obj any) (any, error) {
		if deployment, ok := obj.(*appsv1.Deployment); ok {
			workload.Trim(deployment, groups)
		}
		return obj, nil
	}
}

// Chain returns the informers of the Deployments, ReplicaSets and Pods below an object.
func Chain(c *controller.Context) (ownership.Informers, error) {
	deployments, err := Deployments(c)
	if err != nil {
		return ownership.Informers{}, err
	}
	pods, err := corev1client.NewForConfig(c.ReadConfig())
	if err != nil {
		return ownership.Informers{}, fmt.Errorf("creating client for Pods: %w", err)
	}
	replicaSets, err := metadata.NewForConfig(c.ReadConfig())
	if err != nil {
		return ownership.Informers{}, fmt.Errorf("creating client for ReplicaSets: %w", err)
	}
	return chain(c.Informers(), pods.Pods(c.Namespace()), replicaSets.Resource(replicaSetResource).Namespace(c.Namespace()), deployments), nil
}

var replicaSetResource = appsv1.SchemeGroupVersion.WithResource("replicasets")

func chain(handle *informers.Factory, pods corev1client.PodInterface, replicaSets metadata.ResourceInterface,
	deployments cache.TypedSharedIndexInformer[*appsv1.Deployment]) ownership.Informers {
	return ownership.Informers{
		Pods: informers.InformerFor[*podrecord.Record](handle, corev1.SchemeGroupVersion.WithResource("pods"), pods,
			informers.WithSelector(podrecord.Selector), informers.WithIndexers(podrecord.Indexers()), informers.WithTransform(podrecord.Transform)),
		ReplicaSets: informers.InformerFor[*metav1.PartialObjectMetadata](handle, replicaSetResource, replicaSets,
			informers.WithSelector(podrecord.Selector), informers.WithTransform(ownership.TrimReplicaSet)),
		Deployments: deployments,
	}
}

// trim removes large parts that no controller reads.
func trim(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
		delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}
