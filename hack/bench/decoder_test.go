// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// decoder is the argument that makes the binary of the benchmark a program with an
// informer of the daemon's Pods, which decodes what it is told and keeps next to nothing.
const decoder = "decoder"

// allowDecoder grants the decoder what it needs.
func (l *lab) allowDecoder(ctx context.Context) error {
	return l.allow(ctx, decoder, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}})
}

// runDecoder does not return.
func runDecoder(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	factory := podsOf(kubernetes.NewForConfigOrDie(config), func(pod *corev1.Pod) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion}}
	})
	informer := factory.Core().V1().Pods().Informer()
	factory.StartWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	fmt.Println(standsBy)
	<-ctx.Done()
	os.Exit(0)
}

// podsOf returns the informers of the daemon's Pods, which keep something of each.
func podsOf(client kubernetes.Interface, keep func(*corev1.Pod) *corev1.Pod) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "controller" }),
		informers.WithTransform(func(object any) (any, error) {
			if pod, ok := object.(*corev1.Pod); ok {
				object = keep(pod)
			}
			return object, nil
		}),
	)
}
