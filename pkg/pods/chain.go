// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
)

// Selector is the label selector of the watched Pods and ReplicaSets. Every Deployment that we create gives
// them this label. Others cost nothing.
const Selector = "controller"

// Deployments returns the cached Deployment with that name, and false if there is none. A [Chain] returns
// it to its callers, which must not change it.
type Deployments func(namespace, name string) (*appsv1.Deployment, bool)

// Filter leaves out events.
type Filter struct {
	// Changes reports whether an event of a Pod matters: see [controller.Changes]. nil means that all do.
	Changes func(before, now *Record) bool
	// Skips reports whether an object needs no call for an event at present. nil means that none is skipped.
	Skips func(cache.ObjectName) bool
}

// Chain reads the Pods and ReplicaSets below the objects of one kind. It is safe for concurrent use.
type Chain struct {
	owner       schema.GroupVersionKind
	skips       func(cache.ObjectName) bool // may be nil
	deployments Deployments
	pods        *controller.Reader[*Record]
	replicaSets *controller.Reader[*replicaSetRecord]
}

// Watch makes the controller of b, whose objects are of the kind owner, watch Pods and ReplicaSets. A change
// of one enqueues the object at the end of its owner chain, unless the filter leaves it out. deployments reads
// from a cache of the same controller.
func Watch[T controller.Object](
	b *controller.Builder[T], owner schema.GroupVersionKind, deployments Deployments, filter Filter,
) *Chain {
	c := &Chain{owner: owner, skips: filter.Skips, deployments: deployments}
	options := []controller.Option{controller.Selector(Selector), podIndex}
	if filter.Changes != nil {
		options = append(options, controller.Changes(filter.Changes))
	}
	c.pods = controller.WatchAs(b, c.ofPod, options...)
	c.replicaSets = controller.WatchAs(b, c.ofReplicaSet, controller.Selector(Selector), replicaSetIndex,
		controller.MetadataOf(appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	return c
}

// PodsOf returns the Pods of a Deployment, in no order. It returns none if d is nil. Its cost grows
// with the number of ReplicaSets and Pods of that Deployment, plus the few Pods per ReplicaSet that share the
// entry of an index: see [hashes].
func (c *Chain) PodsOf(d *appsv1.Deployment) []*Record {
	if d == nil {
		return nil
	}
	var pods []*Record
	for _, rs := range controlledBy(c.replicaSets, d.Namespace, pack(d.UID), replicaSetFacts.controlledBy) {
		pods = append(pods, controlledBy(c.pods, d.Namespace, rs.Facts().uid, Facts.controlledBy)...)
	}
	return pods
}

// Watched reports whether the Pods of a Deployment are watched. They are if its selector has the label that
// [Selector] selects.
func Watched(d *appsv1.Deployment) bool {
	if d.Spec.Selector == nil {
		return false
	}
	_, ok := d.Spec.Selector.MatchLabels[Selector]
	return ok
}

// HasPod reports whether the Pod with this UID is cached, whoever owns it. The cache has
// the Pods that [Selector] selects.
func (c *Chain) HasPod(namespace, name string, uid types.UID) bool {
	pod, ok := c.pods.Get(namespace, name)
	return ok && pod.Facts().uid == pack(uid)
}

// DeploymentOf returns the Deployment of the Pod, nil if there is none. It takes constant
// time.
func (c *Chain) DeploymentOf(pod *Record) *appsv1.Deployment {
	facts := pod.Facts()
	if facts.controllerUID == "" {
		return nil
	}
	rs, ok := c.replicaSets.Get(pod.GetNamespace(), facts.controllerName)
	if !ok || rs.Facts().uid != facts.controllerUID {
		return nil
	}
	return c.deploymentOfReplicaSet(rs)
}

// DeploymentOfPod is like [Chain.DeploymentOf] for the cached Pod of that name. It returns nil if there
// is no such Pod.
func (c *Chain) DeploymentOfPod(namespace, name string) *appsv1.Deployment {
	pod, ok := c.pods.Get(namespace, name)
	if !ok {
		return nil
	}
	return c.DeploymentOf(pod)
}

func (c *Chain) deploymentOfReplicaSet(rs *replicaSetRecord) *appsv1.Deployment {
	facts := rs.Facts()
	if facts.controllerUID == "" {
		return nil
	}
	d, ok := c.deployments(rs.GetNamespace(), facts.controllerName)
	if !ok || pack(d.UID) != facts.controllerUID {
		return nil
	}
	return d
}

// ofPod returns the key of the object at the end of a Pod's owner chain, if there is one.
func (c *Chain) ofPod(pod *Record) []cache.ObjectName { return c.ofDeployment(c.DeploymentOf(pod)) }

// ofReplicaSet is like ofPod for a ReplicaSet.
func (c *Chain) ofReplicaSet(rs *replicaSetRecord) []cache.ObjectName {
	return c.ofDeployment(c.deploymentOfReplicaSet(rs))
}

func (c *Chain) ofDeployment(d *appsv1.Deployment) []cache.ObjectName {
	if d == nil {
		return nil
	}
	keys := OwnerKeys(c.owner, d)
	if c.skips == nil {
		return keys
	}
	return slices.DeleteFunc(keys, c.skips)
}

// OwnerKeys returns the key of the object's controller owner if that is of the given kind and version,
// else none.
func OwnerKeys(kind schema.GroupVersionKind, object metav1.Object) []cache.ObjectName {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != kind.Kind {
		return nil
	}
	// Parsing is cheaper than formatting, and this runs for each event of a Pod.
	if version, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || version != kind.GroupVersion() {
		return nil
	}
	return []cache.ObjectName{cache.NewObjectName(object.GetNamespace(), owner.Name)}
}
