// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// MetadataFactory makes informers of metadata, for [ReplicaSets].
type MetadataFactory struct {
	metadatainformer.SharedInformerFactory
}

// NewMetadataFactory returns a factory whose informers select as that of Pods does: a
// ReplicaSet has the labels of its Pods.
func NewMetadataFactory(client metadata.Interface, resync time.Duration) MetadataFactory {
	return MetadataFactory{metadatainformer.NewFilteredSharedInformerFactory(client, resync, metav1.NamespaceAll,
		func(options *metav1.ListOptions) { options.LabelSelector = podrecord.Selector })}
}

// StartWithContext starts the informers, as the factories of clientsets do.
func (f MetadataFactory) StartWithContext(ctx context.Context) { f.Start(ctx.Done()) }

// ReplicaSets returns the factory's informer of ReplicaSets. It holds of each no more
// than its identity and its controller. It fails once the informer was started.
func ReplicaSets(factory MetadataFactory) (cache.TypedSharedIndexInformer[*metav1.PartialObjectMetadata], error) {
	informer := factory.ForResource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Informer()
	if err := informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("trimming ReplicaSets: %w", err)
	}
	return cache.NewTypedSharedIndexInformer[*metav1.PartialObjectMetadata](informer), nil
}

func trim(obj any) (any, error) {
	whole, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	trimmed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: whole.Name, Namespace: whole.Namespace, UID: whole.UID, ResourceVersion: whole.ResourceVersion,
	}}
	if owner := metav1.GetControllerOf(whole); owner != nil {
		trimmed.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return trimmed, nil
}
