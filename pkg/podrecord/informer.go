// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Selector is the label selector of the Pods that are watched: every Deployment of
// ours gives its Pods this label. All others cost nothing.
const Selector = "controller"

// ByController is the index of records by their [Controller]: see [ControllerKey].
const ByController = "controller-uid"

// NewInformer returns the factory's informer of Pods, which holds records.
//
// It is the only one: Core().V1().Pods() of the factory would make a second, that
// holds whole Pods.
func NewInformer(factory kubeinformers.SharedInformerFactory) cache.TypedSharedIndexInformer[*Record] {
	return cache.NewTypedSharedIndexInformer[*Record](factory.InformerFor(&Record{}, newInformer))
}

func newInformer(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync,
		cache.Indexers{ByController: controllerKey},
		func(options *metav1.ListOptions) { options.LabelSelector = Selector })
}

// ControllerKey returns what [ByController] has the records under whose controller has
// the given UID.
func ControllerKey(uid types.UID) string { return string(pack(uid)) }

func controllerKey(obj any) ([]string, error) {
	if key := obj.(*Record).controllerUID; key != "" {
		return []string{string(key)}, nil
	}
	return nil, nil
}
