// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package podrecord

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Selector is the label selector of the Pods that are watched: every Deployment of
// ours gives its Pods this label. All others cost nothing.
const Selector = "controller"

// NewInformer returns the factory's informer of Pods, which holds records.
//
// It is the only one: Core().V1().Pods() of the factory would make a second, that
// holds whole Pods.
func NewInformer(factory kubeinformers.SharedInformerFactory) cache.TypedSharedIndexInformer[*Record] {
	return cache.NewTypedSharedIndexInformer[*Record](factory.InformerFor(&Record{}, newInformer))
}

func newInformer(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync,
		cache.Indexers{byController: controllerHash},
		func(options *metav1.ListOptions) { options.LabelSelector = Selector })
}
