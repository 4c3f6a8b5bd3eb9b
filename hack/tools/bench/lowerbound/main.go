// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lowerbound syncs Foos with only the unavoidable writes: no Events, no metrics,
// hardly a retry, no other owners. It shows what every client-go program needs. With a Lease
// namespace it uses client-go's leader election at its best: the caches are filled before, and a
// standby knows what to write.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	sampleclientset "samplecontroller.io/client-go/clientset/versioned"
	sampleinformers "samplecontroller.io/client-go/informers/externalversions"
	samplelisters "samplecontroller.io/client-go/listers/samplecontroller/v1alpha1"

	"samplecontroller.io/sample-controller-manager/hack/tools/bench/foo"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "How to reach the API server.")
	leaseNamespace := flag.String("leader-elect-resource-namespace", "", "The namespace of the Lease. (default no leader election)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *leaseNamespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// lowerBound reconciles the Deployments of Foos.
type lowerBound struct {
	kube        kubernetes.Interface
	sample      sampleclientset.Interface
	foos        samplelisters.FooLister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedInterface[cache.ObjectName]
	written     sync.Map      // versions, by the key of a Foo
	leads       chan struct{} // closed when this process leads
}

// versions are the resource versions of the last writes for a Foo. It does not act on an older
// cache.
type versions struct{ foo, deployment string }

func run(ctx context.Context, kubeconfig, leaseNamespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	sample := sampleclientset.NewForConfigOrDie(config)
	config.ContentType = "application/vnd.kubernetes.protobuf" // as the others; custom resources have none
	kube := kubernetes.NewForConfigOrDie(config)
	kubeFactory := informers.NewSharedInformerFactory(kube, 0)
	sampleFactory := sampleinformers.NewSharedInformerFactory(sample, 0)
	deployments, foos := kubeFactory.Apps().V1().Deployments(), sampleFactory.Samplecontroller().V1alpha1().Foos()
	f := &lowerBound{
		kube: kube, sample: sample, foos: foos.Lister(), deployments: deployments.Lister(),
		queue: workqueue.NewTyped[cache.ObjectName](), leads: make(chan struct{}),
	}
	// Each Deployment has the name of its Foo here.
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
	if leaseNamespace == "" {
		close(f.leads)
	} else {
		f.elect(ctx, leaseNamespace)
	}
	<-ctx.Done()
	f.queue.ShutDown()
	workers.Wait()
	return nil
}

// elect runs leader election until ctx is done. It exits the process when it loses the Lease.
func (f *lowerBound) elect(ctx context.Context, namespace string) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "lowerbound"},
			Client:     f.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, // as in the daemon
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(f.leads) },
			OnStoppedLeading: func() { os.Exit(0) },
		},
	})
}

// waitToLead returns when this process may write, or when it never will.
func (f *lowerBound) waitToLead(ctx context.Context) {
	select {
	case <-f.leads:
	case <-ctx.Done():
	}
}

// OnAdd queues the Foo, or the Deployment's Foo.
func (f *lowerBound) OnAdd(object any, _ bool) {
	f.queue.Add(cache.MetaObjectToName(object.(metav1.Object)))
}

// OnUpdate queues the Foo, or the Deployment's Foo.
func (f *lowerBound) OnUpdate(_, object any) { f.OnAdd(object, false) }

// OnDelete does nothing: the garbage collector cleans up.
func (f *lowerBound) OnDelete(any) {}

func (f *lowerBound) work(ctx context.Context) {
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

// serve syncs one Foo: its Deployment, then its status.
func (f *lowerBound) serve(ctx context.Context, key cache.ObjectName) error {
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
	if before(object.ResourceVersion, written.foo) || written.deployment != "" &&
		(deployment == nil || before(deployment.ResourceVersion, written.deployment)) {
		return nil // the cache is stale: an event will come
	}
	defer func() { f.written.Store(key, written) }()

	switch {
	case deployment == nil:
		deployment = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: object.Spec.DeploymentName, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object,
				foo.Adapter)},
		}}
		foo.Fill(deployment, object)
		f.waitToLead(ctx)
		deployment, err = f.kube.AppsV1().Deployments(key.Namespace).Create(ctx, deployment, metav1.CreateOptions{})
	case *deployment.Spec.Replicas != *object.Spec.Replicas:
		deployment, err = f.scale(ctx, deployment, *object.Spec.Replicas)
	}
	if apierrors.IsConflict(err) {
		return nil // it has just changed: an event will come
	}
	if err != nil {
		return err
	}
	written.deployment = deployment.ResourceVersion
	return f.writeStatus(ctx, object, deployment, &written)
}

// scale sets the replicas of the Deployment.
func (f *lowerBound) scale(ctx context.Context, deployment *appsv1.Deployment, replicas int32) (*appsv1.Deployment,
	error) {
	f.waitToLead(ctx)
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, deployment.ResourceVersion, replicas)
	return f.kube.AppsV1().Deployments(deployment.Namespace).Patch(ctx, deployment.Name, types.StrategicMergePatchType,
		patch, metav1.PatchOptions{})
}

// writeStatus writes the Foo's status if it differs.
func (f *lowerBound) writeStatus(ctx context.Context, object *samplev1alpha1.Foo, deployment *appsv1.Deployment,
	written *versions) error {
	status := foo.Status(object, deployment)
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	f.waitToLead(ctx)
	object = object.DeepCopy()
	object.Status = status
	updated, err := f.sample.SamplecontrollerV1alpha1().Foos(object.Namespace).UpdateStatus(ctx, object,
		metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // it has just changed: an event will come
	}
	if err != nil {
		return err
	}
	written.foo = updated.ResourceVersion
	return nil
}

// before reports whether a version is older than another, which may be empty.
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
