// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

var icecream = schema.GroupVersionKind{Group: "controller.nicoleh.io", Version: "v1alpha1", Kind: "Icecream"}

// caches are the caches of a chain, filled by the test. The informers do not run.
type caches struct {
	*testing.T
	Informers
	*Chain
}

func newCaches(t *testing.T, objects ...any) caches {
	t.Helper()
	informers := idleInformers()
	chain, err := NewChain(informers)
	if err != nil {
		t.Fatal(err)
	}
	c := caches{t, informers, chain}
	for _, object := range objects {
		c.add(object)
	}
	return c
}

// idleInformers returns informers that do not run.
func idleInformers() Informers {
	return Informers{
		Pods:        cache.NewTypedSharedIndexInformer[*podrecord.Record](cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, podrecord.Indexers())),
		ReplicaSets: cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})),
		Deployments: cache.NewTypedSharedIndexInformer[*appsv1.Deployment](cache.NewSharedIndexInformer(&cache.ListWatch{}, &appsv1.Deployment{}, 0, cache.Indexers{})),
	}
}

func (c caches) add(object any) {
	c.Helper()
	indexer := c.Pods.GetIndexer()
	switch object.(type) {
	case *metav1.PartialObjectMetadata:
		indexer = c.ReplicaSets.GetIndexer()
	case *appsv1.Deployment:
		indexer = c.Deployments.GetIndexer()
	}
	if err := indexer.Add(object); err != nil {
		c.Fatal(err)
	}
}

// metadataOf returns the metadata of an object with UID "uid-<name>" and the given owners.
func metadataOf(name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
		Labels: map[string]string{"app": "icecream", "controller": "example"}, OwnerReferences: owners,
	}
}

func pod(name string, owners ...metav1.OwnerReference) *podrecord.Record {
	return podrecord.New(&corev1.Pod{ObjectMeta: metadataOf(name, owners)})
}

func replicaSet(name string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metadataOf(name, owners)}
}

func deployment(name string, owners ...metav1.OwnerReference) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metadataOf(name, owners)}
}

func by(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: ptr.To(true)}
}

func byIcecream(name string) metav1.OwnerReference {
	owner := by("Icecream", name)
	owner.APIVersion = "controller.nicoleh.io/v1alpha1"
	return owner
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

func elsewhere[T metav1.Object](object T) T {
	object.SetNamespace("elsewhere")
	return object
}

func podElsewhere(name string, owners ...metav1.OwnerReference) *podrecord.Record {
	metadata := metadataOf(name, owners)
	metadata.Namespace = "elsewhere"
	return podrecord.New(&corev1.Pod{ObjectMeta: metadata})
}
