// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// sources are what the informers read from. All bear the name of informers in their user
// agent: they are shared, so no controller's fits.
type sources struct {
	kube      kubernetes.Interface
	metadata  metadata.Interface
	foos      samplev1alpha1client.FoosGetter
	icecreams icecreamv1alpha1client.IcecreamsGetter
	// namespace is the one that is read, empty for all.
	namespace string
}

func newSources(c clients) (sources, error) {
	const name = "informers"
	kube, err := c.kube(c.rest(name, noTimeout))
	if err != nil {
		return sources{}, err
	}
	metadata, err := c.metadata(name)
	if err != nil {
		return sources{}, err
	}
	foos, err := fooClient(c.rest(name, noTimeout))
	if err != nil {
		return sources{}, err
	}
	icecreams, err := icecreamClient(c.rest(name, noTimeout))
	if err != nil {
		return sources{}, err
	}
	return sources{kube, metadata, foos, icecreams, c.Namespace}, nil
}

// Foos returns the informer of Foos.
func (c *ControllerContext) Foos() cache.TypedSharedIndexInformer[*samplev1alpha1.Foo] {
	return informers.Ask[*samplev1alpha1.Foo](c.Informers, samplev1alpha1.SchemeGroupVersion.WithResource("foos"), c.sources.foos.Foos(c.sources.namespace))
}

// Icecreams returns the informer of Icecreams.
func (c *ControllerContext) Icecreams() cache.TypedSharedIndexInformer[*icecreamv1alpha1.Icecream] {
	return informers.Ask[*icecreamv1alpha1.Icecream](c.Informers, icecreamv1alpha1.SchemeGroupVersion.WithResource("icecreams"), c.sources.icecreams.Icecreams(c.sources.namespace))
}

// Deployments returns the informer of Deployments.
func (c *ControllerContext) Deployments() cache.TypedSharedIndexInformer[*appsv1.Deployment] {
	return informers.Ask[*appsv1.Deployment](c.Informers, appsv1.SchemeGroupVersion.WithResource("deployments"), c.sources.kube.AppsV1().Deployments(c.sources.namespace))
}

// chain returns the informers of all that is between an object and its Pods.
func (c *ControllerContext) chain() ownership.Informers {
	replicaSets := appsv1.SchemeGroupVersion.WithResource("replicasets")
	return ownership.Informers{
		Pods: informers.Ask[*podrecord.Record](c.Informers, corev1.SchemeGroupVersion.WithResource("pods"), c.sources.kube.CoreV1().Pods(c.sources.namespace),
			informers.WithSelector(podrecord.Selector), informers.WithIndexers(podrecord.Indexers()), informers.WithTransform(podrecord.Transform)),
		ReplicaSets: informers.Ask[*metav1.PartialObjectMetadata](c.Informers, replicaSets, c.sources.metadata.Resource(replicaSets).Namespace(c.sources.namespace),
			informers.WithSelector(podrecord.Selector), informers.WithTransform(ownership.TrimReplicaSet)),
		Deployments: c.Deployments(),
	}
}

// resyncPeriod returns a period between least and twice least, so that the
// processes of a cluster do not resync in step.
func resyncPeriod(least time.Duration) time.Duration {
	return least + time.Duration(rand.Float64()*float64(least))
}

// trim returns the transform that drops from cached objects what no controller of the
// registry reads and takes the most room.
func trim(registry *controller.Registry[*ControllerContext]) cache.TransformFunc {
	groups := ownGroups(registry)
	return func(obj any) (any, error) {
		if deployment, ok := obj.(*appsv1.Deployment); ok {
			workload.Trim(deployment, groups)
			return deployment, nil
		}
		if accessor, err := meta.Accessor(obj); err == nil {
			accessor.SetManagedFields(nil)
			delete(accessor.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
		}
		return obj, nil
	}
}

// ownGroups returns the API groups of the kinds that the controllers are for: those whose
// statuses they write, whether they are enabled or not.
func ownGroups(registry *controller.Registry[*ControllerContext]) sets.Set[string] {
	groups := sets.New[string]()
	for _, d := range registry.Descriptors() {
		for _, rule := range d.Rules {
			if slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.HasSuffix(resource, "/status") }) {
				groups.Insert(rule.APIGroups...)
			}
		}
	}
	return groups
}
