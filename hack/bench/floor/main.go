// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command floor serves Foos with the writes that cannot be avoided, and does nothing
// else: no leader election, no Events, no metrics, no retries to speak of, no other
// owners. Nobody should run it; it shows what a client-go program can not do without.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
	samplelisters "samplecontroller.io/client-go/listers/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/bench/foo"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// floor keeps the Deployments of Foos.
type floor struct {
	kube        kubernetes.Interface
	sample      sampleclientset.Interface
	foos        samplelisters.FooLister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedInterface[cache.ObjectName]
	written     sync.Map // from the key of a Foo to versions
}

// versions are what was written last for a Foo: what is cached before that is not acted
// upon.
type versions struct{ foo, deployment string }

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	sample, err := sampleclientset.NewForConfig(config)
	if err != nil {
		return err
	}
	kubeFactory := informers.NewSharedInformerFactory(kube, 0)
	sampleFactory := sampleinformers.NewSharedInformerFactory(sample, 0)
	deployments, foos := kubeFactory.Apps().V1().Deployments(), sampleFactory.Samplecontroller().V1alpha1().Foos()
	f := &floor{
		kube: kube, sample: sample, foos: foos.Lister(), deployments: deployments.Lister(),
		queue: workqueue.NewTyped[cache.ObjectName](),
	}
	// Each Deployment is named after its Foo here.
	for _, informer := range []cache.SharedIndexInformer{foos.Informer(), deployments.Informer()} {
		if _, err := informer.AddEventHandler(f); err != nil {
			return err
		}
	}
	kubeFactory.Start(ctx.Done())
	sampleFactory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), foos.Informer().HasSynced, deployments.Informer().HasSynced)

	var workers sync.WaitGroup
	for range foo.Workers {
		workers.Go(func() { f.work(ctx) })
	}
	<-ctx.Done()
	f.queue.ShutDown()
	workers.Wait()
	return nil
}

// OnAdd has the Foo of what was added looked at.
func (f *floor) OnAdd(object any, _ bool) {
	f.queue.Add(cache.MetaObjectToName(object.(metav1.Object)))
}

// OnUpdate has the Foo of what was changed looked at.
func (f *floor) OnUpdate(_, object any) { f.OnAdd(object, false) }

// OnDelete does nothing: the garbage collector does.
func (f *floor) OnDelete(any) {}

func (f *floor) work(ctx context.Context) {
	for {
		key, shutDown := f.queue.Get()
		if shutDown {
			return
		}
		err := f.serve(ctx, key)
		f.queue.Done(key)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			f.queue.Add(key)
		}
	}
}

// serve brings one Foo's Deployment to where it should be, then its status.
func (f *floor) serve(ctx context.Context, key cache.ObjectName) error {
	object, err := f.foos.Foos(key.Namespace).Get(key.Name)
	if err != nil {
		return ignoreNotFound(err)
	}
	deployment, err := f.deployments.Deployments(key.Namespace).Get(object.Spec.DeploymentName)
	if ignoreNotFound(err) != nil {
		return err
	}
	var written versions
	if v, ok := f.written.Load(key); ok {
		written = v.(versions)
	}
	if before(object.ResourceVersion, written.foo) || written.deployment != "" && (deployment == nil || before(deployment.ResourceVersion, written.deployment)) {
		return nil // it comes again when the cache has caught up
	}
	defer func() { f.written.Store(key, written) }()

	switch {
	case deployment == nil:
		deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: object.Spec.DeploymentName, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, foo.Kind)},
		}}
		foo.Fill(deployment, object)
		deployment, err = f.kube.AppsV1().Deployments(key.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
	case *deployment.Spec.Replicas != *object.Spec.Replicas:
		deployment, err = f.scale(ctx, deployment, *object.Spec.Replicas)
	}
	if apierrors.IsConflict(err) {
		return nil // it comes again as it was changed just now
	}
	if err != nil {
		return err
	}
	written.deployment = deployment.ResourceVersion
	return f.tell(ctx, object, deployment, &written)
}

// scale gives the Deployment replicas.
func (f *floor) scale(ctx context.Context, deployment *appsv1.Deployment, replicas int32) (*appsv1.Deployment, error) {
	scale, err := f.kube.AppsV1().Deployments(deployment.Namespace).UpdateScale(ctx, deployment.Name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: deployment.Name, Namespace: deployment.Namespace, ResourceVersion: deployment.ResourceVersion},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	scaled := *deployment
	scaled.ResourceVersion, scaled.Generation, scaled.Spec.Replicas = scale.ResourceVersion, deployment.Generation+1, &scale.Spec.Replicas
	return &scaled, nil
}

// tell writes the Foo's status if it differs.
func (f *floor) tell(ctx context.Context, object *samplev1alpha1.Foo, deployment *appsv1.Deployment, written *versions) error {
	status := foo.Status(object, deployment)
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	object = object.DeepCopy()
	object.Status = status
	updated, err := f.sample.SamplecontrollerV1alpha1().Foos(object.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // it comes again as it was changed just now
	}
	if err != nil {
		return err
	}
	written.foo = updated.ResourceVersion
	return nil
}

// before tells whether a version is older than another, which may be that of nothing.
func before(version, other string) bool {
	if other == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
