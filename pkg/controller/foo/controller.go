// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package foo

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
	samplev1alpha1listers "samplecontroller.io/client-go/listers/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/lenient"
	"samplecontroller.io/controller-manager/reconcile"

	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the one name of the controller: in --controllers, queue,
// metrics, logs and health checks, as Event source, field manager and user agent.
const ControllerName = "foo-controller"

// byDeployment is the index of Foos by the Deployment that they name.
const byDeployment = "spec.deploymentName"

// Controller keeps the Deployments of Foos. Make it with [NewController].
type Controller struct {
	foos      samplev1alpha1listers.FooLister
	fooIndex  cache.TypedIndexer[*samplev1alpha1.Foo]
	fooClient samplev1alpha1client.FoosGetter
	fooStore  cache.Store
	keeper    *workload.Keeper
	keptStore cache.Store // of Deployments
	written   reconcile.Written
	recorder  record.EventRecorder
	reporter  *lenient.Reporter // of undecodable Foos
	clock     clock.PassiveClock
	loop      *reconcile.Loop
	workers   int
}

// NewController returns a controller that reads from the informers, writes with
// the clients and syncs with the given number of workers. It adds an index to
// foos, so it must be called before that informer is started.
func NewController(
	foos cache.TypedSharedIndexInformer[*samplev1alpha1.Foo],
	deployments cache.TypedSharedIndexInformer[*appsv1.Deployment],
	fooClient samplev1alpha1client.FoosGetter,
	deploymentClient appsv1client.DeploymentsGetter,
	recorder record.EventRecorder,
	workers int,
	opts ...reconcile.Option,
) (*Controller, error) {
	err := foos.AddTypedIndexers(cache.TypedIndexers[*samplev1alpha1.Foo]{
		byDeployment: func(foo *samplev1alpha1.Foo) ([]string, error) {
			if lenient.DecodeError(foo) != nil {
				return nil, nil // which one it names is not known
			}
			return []string{deploymentKey(foo.Namespace, foo.Spec.DeploymentName)}, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("indexing Foos by Deployment: %w", err)
	}
	keeper, err := workload.NewKeeper(deployments, deploymentClient, ControllerName)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		foos:      samplev1alpha1listers.NewFooLister(foos.GetIndexer()),
		fooIndex:  foos.GetTypedIndexer(),
		fooClient: fooClient,
		fooStore:  foos.GetStore(),
		keptStore: deployments.GetStore(),
		keeper:    keeper,
		recorder:  recorder,
		reporter:  lenient.NewReporter(recorder),
		clock:     clock.RealClock{},
		workers:   workers,
	}
	c.loop = reconcile.New(ControllerName, c.sync, opts...)
	reconcile.For(c.loop, foos)
	reconcile.Watch(c.loop, deployments, c.foosOf)
	return c, nil
}

// Name implements controller.Controller.
func (c *Controller) Name() string { return ControllerName }

// Run implements controller.Controller.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx, c.workers) }

// foosOf returns the Foos that a Deployment concerns: the one that owns it, and
// those that name it, which may be waiting for it to go.
func (c *Controller) foosOf(deployment *appsv1.Deployment) []cache.ObjectName {
	var keys []cache.ObjectName
	if owner := metav1.GetControllerOf(deployment); owner != nil && owner.Kind == kind.Kind && owner.APIVersion == kind.GroupVersion().String() {
		keys = append(keys, cache.NewObjectName(deployment.Namespace, owner.Name))
	}
	// The index exists: the constructor made it.
	named, _ := c.fooIndex.ByTypedIndex(byDeployment, deploymentKey(deployment.Namespace, deployment.Name))
	for _, foo := range named {
		keys = append(keys, cache.MetaObjectToName(foo))
	}
	return keys
}

func deploymentKey(namespace, name string) string { return namespace + "/" + name }
