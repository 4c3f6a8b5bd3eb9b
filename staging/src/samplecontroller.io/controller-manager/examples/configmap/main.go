// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The configmap-manager keeps a checksum of each ConfigMap labelled checksum=wanted.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
)

const annotation = "example.com/checksum"

func main() {
	os.Exit(manager.Main(manager.Program{
		Name: "configmap-manager", Port: 10262,
		Controllers: []controller.Descriptor{{Name: "checksum-controller", Workers: 2, New: newChecksums}},
	}))
}

// checksums is the controller. It reads from the cache and writes with the client.
type checksums struct {
	name   string
	client corev1client.ConfigMapsGetter
	lister corelisters.ConfigMapLister
}

func newChecksums(_ context.Context, c *controller.Context) (controller.Controller, error) {
	source, err := corev1client.NewForConfig(c.ReadConfig())
	if err != nil {
		return nil, err
	}
	client, err := corev1client.NewForConfig(c.ClientConfig())
	if err != nil {
		return nil, err
	}
	configMaps := informers.Ask[*corev1.ConfigMap](c.Informers(), corev1.SchemeGroupVersion.WithResource("configmaps"), source.ConfigMaps(c.Namespace()))
	sums := &checksums{name: c.Name(), client: client, lister: corelisters.NewConfigMapLister(configMaps.GetIndexer())}
	loop := c.Loop(sums.sync)
	reconcile.For(loop, configMaps)
	return loop, nil
}

// sync compares what is with what should be, and writes only a difference.
func (c *checksums) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	configMap, err := c.lister.ConfigMaps(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	want := checksum(configMap.Data, configMap.BinaryData)
	if configMap.Labels["checksum"] != "wanted" || configMap.Annotations[annotation] == want {
		return 0, nil
	}
	// With the resourceVersion a decision on a stale copy is refused, and made again.
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:%q}}}`, configMap.ResourceVersion, annotation, want)
	_, err = c.client.ConfigMaps(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.name})
	return 0, err
}

// checksum is a pure function of the data: printed, maps are sorted by key.
func checksum(data ...any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", data)))
}
