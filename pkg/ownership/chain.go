// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// Chain is the cached chain of ownership between objects and their Pods. It is safe for
// concurrent use.
type Chain struct {
	pods        cache.TypedIndexer[*podrecord.Record]
	replicaSets cache.TypedIndexer[*metav1.PartialObjectMetadata]
	deployments cache.TypedIndexer[*appsv1.Deployment]
}

// Informers are the informers that a [Chain] reads.
type Informers struct {
	Pods        cache.TypedSharedIndexInformer[*podrecord.Record]
	ReplicaSets cache.TypedSharedIndexInformer[*metav1.PartialObjectMetadata]
	Deployments cache.TypedSharedIndexInformer[*appsv1.Deployment]
}

// NewChain returns the chain of the informers. It adds indexes to them, so call it before
// they are started.
func NewChain(i Informers) (*Chain, error) {
	if err := Index(i.ReplicaSets); err != nil {
		return nil, fmt.Errorf("ReplicaSets: %w", err)
	}
	if err := Index(i.Deployments); err != nil {
		return nil, fmt.Errorf("Deployments: %w", err)
	}
	return &Chain{i.Pods.GetTypedIndexer(), i.ReplicaSets.GetTypedIndexer(), i.Deployments.GetTypedIndexer()}, nil
}

// DeploymentsOf returns the Deployments of the object with the given UID, in no order.
func (c *Chain) DeploymentsOf(namespace string, uid types.UID) ([]*appsv1.Deployment, error) {
	deployments, err := Owned(c.deployments, namespace, uid)
	if err != nil {
		return nil, fmt.Errorf("reading Deployments: %w", err)
	}
	return deployments, nil
}

// PodsOf returns the Pods of a Deployment, in no order. It returns none if d is nil. Its cost grows
// with the number of ReplicaSets and Pods of that Deployment, plus the few Pods per ReplicaSet that
// [podrecord.ControlledBy] filters out.
func (c *Chain) PodsOf(d *appsv1.Deployment) ([]*podrecord.Record, error) {
	if d == nil {
		return nil, nil
	}
	replicaSets, err := Owned(c.replicaSets, d.Namespace, d.UID)
	if err != nil {
		return nil, fmt.Errorf("reading ReplicaSets of Deployment %q: %w", d.Name, err)
	}
	var pods []*podrecord.Record
	for _, rs := range replicaSets {
		found, err := podrecord.ControlledBy(c.pods, d.Namespace, rs.UID)
		if err != nil {
			return nil, fmt.Errorf("reading Pods of ReplicaSet %q: %w", rs.Name, err)
		}
		pods = append(pods, found...)
	}
	return pods, nil
}

// PodsWatched reports whether the Pods of a Deployment are watched. They are if its
// selector has the label that [podrecord.Selector] selects.
func PodsWatched(d *appsv1.Deployment) bool {
	if d.Spec.Selector == nil {
		return false
	}
	_, ok := d.Spec.Selector.MatchLabels[podrecord.Selector]
	return ok
}

// HasPod reports whether the Pod with this UID is cached, whoever owns it. The cache has
// the Pods that [podrecord.Selector] selects.
func (c *Chain) HasPod(namespace, name string, uid types.UID) bool {
	pod, ok := get(c.pods, namespace, name)
	return ok && pod.UID() == uid
}

// DeploymentOf returns the Deployment of the Pod, nil if there is none. It takes constant
// time.
func (c *Chain) DeploymentOf(pod *podrecord.Record) *appsv1.Deployment {
	owner := pod.Controller()
	rs, ok := get(c.replicaSets, pod.GetNamespace(), owner.Name)
	if !ok || rs.UID != owner.UID {
		return nil
	}
	return c.deploymentOfReplicaSet(rs)
}

// DeploymentOfPod is like [Chain.DeploymentOf] for the cached Pod of that name.
func (c *Chain) DeploymentOfPod(namespace, name string) *appsv1.Deployment {
	pod, ok := get(c.pods, namespace, name)
	if !ok {
		return nil
	}
	return c.DeploymentOf(pod)
}

// OfPod returns a function that returns the key of the object of the given kind at the end
// of a Pod's owner chain, if there is one.
func (c *Chain) OfPod(kind schema.GroupVersionKind) func(*podrecord.Record) []cache.ObjectName {
	return func(pod *podrecord.Record) []cache.ObjectName {
		if d := c.DeploymentOf(pod); d != nil {
			return OwnerKeys(kind, d)
		}
		return nil
	}
}

// OfReplicaSet is like [Chain.OfPod] for a ReplicaSet.
func (c *Chain) OfReplicaSet(kind schema.GroupVersionKind) func(*metav1.PartialObjectMetadata) []cache.ObjectName {
	return func(rs *metav1.PartialObjectMetadata) []cache.ObjectName {
		if d := c.deploymentOfReplicaSet(rs); d != nil {
			return OwnerKeys(kind, d)
		}
		return nil
	}
}

func (c *Chain) deploymentOfReplicaSet(rs *metav1.PartialObjectMetadata) *appsv1.Deployment {
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil {
		return nil
	}
	d, ok := get(c.deployments, rs.Namespace, owner.Name)
	if !ok || d.UID != owner.UID {
		return nil
	}
	return d
}

// OwnerKeys returns the key of the object's controller owner if that is of the given kind.
func OwnerKeys(kind schema.GroupVersionKind, obj metav1.Object) []cache.ObjectName {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != kind.Kind {
		return nil
	}
	// Parsing is cheaper than formatting, and this runs for each event of a Pod.
	if version, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || version != kind.GroupVersion() {
		return nil
	}
	return []cache.ObjectName{cache.NewObjectName(obj.GetNamespace(), owner.Name)}
}

// get returns an object of a cache with [cache.MetaNamespaceKeyFunc] keys.
func get[T cache.Object](objects cache.TypedIndexer[T], namespace, name string) (T, bool) {
	obj, exists, err := objects.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return *new(T), false
	}
	return obj.(T), true
}
