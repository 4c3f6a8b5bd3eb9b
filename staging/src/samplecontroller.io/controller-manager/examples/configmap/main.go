// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The configmap-manager keeps a checksum of each ConfigMap labelled checksum=wanted.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/cli"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/reconcile"
)

const (
	controllerName = "checksum-controller"
	annotation     = "example.com/checksum"
	workers        = 2
)

// registry is the controller map: --controllers selects from it.
var registry = controller.NewRegistry(controller.Descriptor[shared]{Name: controllerName, New: newChecksums, Workers: workers})

// shared is what controllers are made from.
type shared struct {
	source, client kubernetes.Interface
	informers      *informers.Handle
}

// checksums is the controller. It reads from the cache and writes with the client.
type checksums struct {
	shared
	*reconcile.Loop
	lister corelisters.ConfigMapLister
}

func newChecksums(_ context.Context, s shared) (controller.Controller, error) {
	configMaps := informers.Ask[*corev1.ConfigMap](s.informers, corev1.SchemeGroupVersion.WithResource("configmaps"), s.source.CoreV1().ConfigMaps(""))
	c := &checksums{shared: s, lister: corelisters.NewConfigMapLister(configMaps.GetIndexer())}
	c.Loop = reconcile.New(controllerName, c.sync, reconcile.WithTimeout(10*time.Second), reconcile.WithSources(s.informers))
	reconcile.For(c.Loop, configMaps)
	return c, nil
}

func (c *checksums) Run(ctx context.Context) error { return c.Loop.Run(ctx, workers) }

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
	_, err = c.client.CoreV1().ConfigMaps(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: controllerName})
	return 0, err
}

// checksum is a pure function of the data: printed, maps are sorted by key.
func checksum(data ...any) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", data)))
}

// build makes what controllers share, and those that are enabled.
func build(ctx context.Context, configs manager.Configs, enabled []string) (*informers.Handle, []controller.Controller, error) {
	source, err := kubernetes.NewForConfig(configs.Informers)
	client, err2 := kubernetes.NewForConfig(configs.Controllers)
	if err := errors.Join(err, err2); err != nil {
		return nil, nil, err
	}
	handle := informers.NewHandle()
	controllers, err := registry.Build(ctx, shared{source, client, handle}, enabled)
	return handle, controllers, err
}

func main() {
	os.Exit(cli.Run(manager.NewCommand(manager.NewOptions("configmap-manager", 10262, registry), build)))
}
