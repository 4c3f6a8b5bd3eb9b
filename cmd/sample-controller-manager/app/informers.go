// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/informers"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// foos returns the informer of Foos.
func (c *ControllerContext) foos() cache.TypedSharedIndexInformer[*samplev1alpha1.Foo] {
	return informers.Ask(c.Informers, c.sampleFactory.Samplecontroller().V1alpha1().Foos().TypedInformer())
}

// icecreams returns the informer of Icecreams.
func (c *ControllerContext) icecreams() cache.TypedSharedIndexInformer[*icecreamv1alpha1.Icecream] {
	return informers.Ask(c.Informers, c.sampleFactory.Icecream().V1alpha1().Icecreams().TypedInformer())
}

// deployments returns the informer of Deployments.
func (c *ControllerContext) deployments() cache.TypedSharedIndexInformer[*appsv1.Deployment] {
	return informers.Ask(c.Informers, c.kubeFactory.Apps().V1().Deployments().TypedInformer())
}

// chain returns the informers of all that is between an object and its Pods.
func (c *ControllerContext) chain() (ownership.Informers, error) {
	replicaSets, err := ownership.ReplicaSets(c.metadataFactory)
	if err != nil {
		return ownership.Informers{}, err
	}
	return ownership.Informers{
		Pods:        informers.Ask(c.Informers, podrecord.NewInformer(c.kubeFactory)),
		ReplicaSets: informers.Ask(c.Informers, replicaSets),
		Deployments: c.deployments(),
	}, nil
}

// resyncPeriod returns a period between least and twice least, so that the
// processes of a cluster do not resync in step.
func resyncPeriod(least time.Duration) time.Duration {
	return least + time.Duration(rand.Float64()*float64(least))
}

// trim drops from cached objects what no controller reads and takes the most room.
func trim(obj any) (any, error) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		workload.Trim(obj)
		return obj, nil
	case *corev1.Pod, *podrecord.Record: // a transform may be called twice
		return podrecord.Transform(obj)
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
		delete(accessor.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}
