// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
)

// ControllerName is the name of the controller.
const ControllerName = "faulty-controller"

// Fault is the key of a ConfigMap's data, and the annotation of a Foo, that specify a fault.
const Fault = "fault"

// Served is the message that an ordinary sync of a ConfigMap logs, with the key and the
// version, if the ConfigMap's data has a key of this name.
const Served = "served"

// Descriptor describes the controller.
func Descriptor() controller.Descriptor {
	return controller.Descriptor{
		Name:    ControllerName,
		New:     newController,
		Workers: 10,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{samplev1alpha1.GroupName}, Resources: []string{"foos"}, Verbs: []string{"list", "watch"}},
		},
	}
}

// faulty is the controller.
type faulty struct {
	*reconcile.Loop
	configMaps corelisters.ConfigMapLister
	ends       chan func() error // results with which Run must end
}

func newController(_ context.Context, c *controller.Context) (controller.Controller, error) {
	client, err := kubernetes.NewForConfig(c.ReadConfig())
	if err != nil {
		return nil, fmt.Errorf("making client of %s: %w", ControllerName, err)
	}
	resource := samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	source, err := tolerant.ClientFor[*samplev1alpha1.Foo, *samplev1alpha1.FooList](c.ReadConfig(), samplescheme.Scheme,
		resource)
	if err != nil {
		return nil, fmt.Errorf("making client of %s: %w", ControllerName, err)
	}
	// foo-controller gives a transform, too.
	foos := informers.InformerFor[*samplev1alpha1.Foo](c.Informers(), resource, source(c.Namespace()),
		informers.WithTransform(func(obj any) (any, error) { return obj, nil }))
	configMaps := informers.InformerFor[*corev1.ConfigMap](c.Informers(), corev1.SchemeGroupVersion.WithResource("configmaps"),
		client.CoreV1().ConfigMaps(metav1.NamespaceAll))
	f := &faulty{configMaps: corelisters.NewConfigMapLister(configMaps.GetIndexer()), ends: make(chan func() error)}
	f.Loop = c.Loop(f.sync)
	reconcile.WatchSelf(f.Loop, configMaps)
	reconcile.Watch(f.Loop, foos, func(foo *samplev1alpha1.Foo) []cache.ObjectName {
		return onFoo(foo, foos.GetIndexer())
	})
	return f, nil
}

// onFoo is the faulty event handler. A Foo enqueues the ConfigMap of its name.
func onFoo(foo *samplev1alpha1.Foo, foos cache.Indexer) []cache.ObjectName {
	switch foo.Annotations[Fault] {
	case "panic":
		panic("the event handler panics for " + foo.Name)
	case "hang":
		hang(foo, foos)
	}
	return []cache.ObjectName{{Namespace: foo.Namespace, Name: foo.Name}}
}

// hang returns once the Foo no longer has the fault "hang".
func hang(foo *samplev1alpha1.Foo, foos cache.Indexer) {
	klog.Background().Info("Event handler hangs", "foo", klog.KObj(foo))
	key := cache.MetaObjectToName(foo).String()
	for {
		now, exists, err := foos.GetByKey(key)
		if err != nil || !exists || now.(*samplev1alpha1.Foo).Annotations[Fault] != "hang" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	klog.Background().Info("Event handler continues", "foo", klog.KObj(foo))
}

// Run implements controller.Controller.
func (f *faulty) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- f.Loop.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case end := <-f.ends:
		cancel()
		<-ended
		return end()
	}
}

func (f *faulty) sync(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
	configMap, err := f.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	switch configMap.Data[Fault] {
	case "panic":
		panic("the sync panics for " + key.Name)
	case "hang":
		<-ctx.Done()
		return 0, fmt.Errorf("waiting: %w", ctx.Err())
	case "stuck":
		klog.FromContext(ctx).Info("Sync is stuck")
		f.stick(key)
	case "fail":
		return 0, f.end(ctx, func() error { return errors.New("the controller fails") })
	case "crash":
		return 0, f.end(ctx, func() error { panic("the controller crashes") })
	}
	if _, wanted := configMap.Data[Served]; wanted {
		klog.FromContext(ctx).Info(Served, "configMap", klog.KObj(configMap), "version", configMap.Data[Served])
	}
	return 0, nil
}

// stick returns once the ConfigMap no longer has the fault "stuck".
func (f *faulty) stick(key cache.ObjectName) {
	for {
		configMap, err := f.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
		if err != nil || configMap.Data[Fault] != "stuck" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// end makes Run end.
func (f *faulty) end(ctx context.Context, how func() error) error {
	select {
	case f.ends <- how:
	case <-ctx.Done(): // another fault was faster
	}
	return nil
}
