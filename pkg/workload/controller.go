// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
)

// byDeployment is the index of objects by the Deployment that they name.
const byDeployment = "spec.deploymentName"

// Object is one that a Deployment is kept for.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// Kind is what the objects of one kind have of their own.
type Kind[T Object] interface {
	// GroupVersionKind returns what the kind is called.
	GroupVersionKind() schema.GroupVersionKind
	// StatusResource returns what the statuses of its objects are called in the API.
	StatusResource() schema.GroupResource
	// Owner returns the object as the owner of its Deployment.
	Owner(T) Owner
	// List returns the objects of a namespace as the API server has them, and at which
	// version.
	List(ctx context.Context, namespace string, options metav1.ListOptions) (objects []T, version string, err error)
	// Status returns what the object's status says.
	Status(T) Status
	// SameStatus tells whether what is the controller's of two statuses is the same.
	SameStatus(a, b T) bool
	// StatusWrite returns the write that changes the object's status from current to wanted,
	// and removes conditions that wanted lacks: see [RemoveStray]. It is nil if nothing
	// differs. It returns the written object, and must write only to the given version.
	StatusWrite(obj T, current, wanted Status) (StatusWrite[T], error)
}

// StatusWrite writes the status of an object.
type StatusWrite[T Object] func(context.Context) (T, error)

// Options are what a controller is made of, whatever its kind.
type Options[T Object] struct {
	// Objects and Deployments are what it reads.
	Objects     cache.TypedSharedIndexInformer[T]
	Deployments cache.TypedSharedIndexInformer[*appsv1.Deployment]
	// Client writes Deployments.
	Client appsv1client.DeploymentsGetter
	// Writes is what all that the controller writes passes through, and is told of
	// what it need not write; it may be nil.
	Writes *writes.Transport
	// Consistency is of the objects, and shared by all controllers that write to them.
	Consistency *reconcile.ConsistencyStore
	// Recorder tells of the objects.
	Recorder record.EventRecorder
	// Loop is how its loop works.
	Loop []reconcile.Option
}

// Controller keeps the Deployments of the objects of one kind, and has their statuses
// say what has become of them.
type Controller[T Object] struct {
	name        string
	kind        Kind[T]
	objects     cache.TypedIndexer[T]
	reconciler  *Reconciler
	kept        cache.Store // of Deployments
	writes      *writes.Transport
	consistency *reconcile.ConsistencyStore
	recorder    record.EventRecorder
	reporter    *tolerant.Reporter // of undecodable objects
	clock       clock.PassiveClock
	pace        pace
	statuses    string // what they are called in metrics
	loop        *reconcile.Loop
}

// NewController returns the controller of a kind. The name is also the field manager of
// what it writes. It adds indexes to the informers, so it must be called before they
// are started.
func NewController[T Object](name string, kind Kind[T], o Options[T]) (*Controller[T], error) {
	err := o.Objects.AddTypedIndexers(cache.TypedIndexers[T]{
		byDeployment: func(obj T) ([]string, error) {
			if tolerant.DecodeError(obj) != nil {
				return nil, nil // which one it names is not known
			}
			return []string{deploymentKey(obj.GetNamespace(), kind.Owner(obj).DeploymentName)}, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("indexing by Deployment: %w", err)
	}
	reconciler, err := NewReconciler(o.Objects.GetTypedIndexer(), o.Deployments, o.Client, o.Writes, name)
	if err != nil {
		return nil, err
	}
	c := &Controller[T]{
		name:        name,
		kind:        kind,
		objects:     o.Objects.GetTypedIndexer(),
		reconciler:  reconciler,
		kept:        o.Deployments.GetStore(),
		writes:      o.Writes,
		consistency: o.Consistency,
		recorder:    o.Recorder,
		reporter:    tolerant.NewReporter(o.Recorder),
		clock:       clock.RealClock{},
		statuses:    kind.StatusResource().String(),
	}
	c.loop = reconcile.New(name, c.sync, o.Loop...)
	reconcile.For(c.loop, o.Objects)
	reconcile.Watch(c.loop, o.Deployments, c.concerned)
	return c, nil
}

// Name implements controller.Controller.
func (c *Controller[T]) Name() string { return c.name }

// Run implements controller.Controller.
func (c *Controller[T]) Run(ctx context.Context) error {
	c.reconciler.Begin()
	return c.loop.Run(ctx)
}

// Loop returns the controller's loop, for it to be told of more to watch before it is
// run.
func (c *Controller[T]) Loop() *reconcile.Loop { return c.loop }

// Loops implements supervisor.Looper.
func (c *Controller[T]) Loops() []*reconcile.Loop { return c.loop.Loops() }

// concerned returns the objects that a Deployment concerns: the one that owns it, and
// those that name it, which may be waiting for it to go.
func (c *Controller[T]) concerned(deployment *appsv1.Deployment) []cache.ObjectName {
	keys := ownership.OwnerKeys(c.kind.GroupVersionKind(), deployment)
	// The index exists: the constructor made it.
	named, _ := c.objects.ByTypedIndex(byDeployment, deploymentKey(deployment.Namespace, deployment.Name))
	for _, obj := range named {
		keys = append(keys, cache.MetaObjectToName(obj))
	}
	return keys
}

func deploymentKey(namespace, name string) string { return namespace + "/" + name }
