// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
)

// A loop that syncs ConfigMaps. A Secret enqueues the ConfigMap of the same name.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	configMaps, secrets := factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()

	sync := func(_ context.Context, key cache.ObjectName) (time.Duration, error) {
		configMap, err := configMaps.Lister().ConfigMaps(key.Namespace).Get(key.Name)
		if err != nil {
			return 0, err
		}
		fmt.Println("syncing", configMap.Name)
		cancel() // end the example
		return 0, nil
	}
	loop := reconcile.New("settings-controller", sync, reconcile.WithWorkers(2))
	reconcile.WatchSelf(loop, configMaps.TypedInformer())
	reconcile.Watch(loop, secrets.TypedInformer(), func(secret *corev1.Secret) []cache.ObjectName {
		return []cache.ObjectName{cache.NewObjectName(secret.Namespace, secret.Name)}
	})

	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := loop.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: syncing settings
}
