// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"samplecontroller.io/controller-manager/informers"
)

// Informers of a process are started and stopped together. The example needs an API server,
// because fake clientsets do not stream lists.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:8001"}) // kubectl proxy
	if err != nil {
		fmt.Println(err)
		return
	}

	factory := informers.NewFactory()
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	configMaps := informers.InformerFor[*corev1.ConfigMap](factory, resource, client.CoreV1().ConfigMaps(""))
	lister := corev1listers.NewConfigMapLister(configMaps.GetIndexer())

	factory.Start(ctx)
	defer factory.Shutdown()
	if !factory.WaitUntilSettled(ctx) {
		return // told to stop
	}
	fmt.Println(lister.ConfigMaps("default").Get("settings"))
}
