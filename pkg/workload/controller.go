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

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/tolerant"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
)

// byDeployment is the index of objects by the Deployment that their spec names.
const byDeployment = "spec.deploymentName"

// Object is an API object that manages one Deployment.
type Object interface {
	comparable
	metav1.Object
	runtime.Object
}

// Kind adapts one kind of object to the shared controller.
type Kind[T Object] interface {
	// GroupVersionKind returns the kind.
	GroupVersionKind() schema.GroupVersionKind
	// StatusResource returns the resource of the status, for example "foos/status".
	StatusResource() schema.GroupResource
	// Owner returns the object as the owner of its Deployment.
	Owner(T) Owner
	// List lists the objects of a namespace from the API server. It also returns the
	// resourceVersion of the list.
	List(ctx context.Context, namespace string, options metav1.ListOptions) (objects []T, version string, err error)
	// Status returns the controller's part of the object's status.
	Status(T) Status
	// Conditions returns the observed generation and all conditions of the object's status,
	// without copying them.
	Conditions(T) (observedGeneration int64, conditions []metav1.Condition)
	// SameStatus reports whether the controller's parts of two statuses are equal.
	SameStatus(a, b T) bool
	// StatusWrite returns a function that changes the object's status from current to
	// wanted and removes what wanted lacks: see [Stray]. It returns nil if
	// they are equal. The function returns the written object. It must bind its writes to
	// the object's resourceVersion.
	StatusWrite(obj T, current, wanted Status) (StatusWrite[T], error)
}

// StatusWrite writes the status of an object.
type StatusWrite[T Object] func(context.Context) (T, error)

// Options configure a [Controller].
type Options[T Object] struct {
	// Objects and Deployments are the informers that the controller reads.
	Objects     cache.TypedSharedIndexInformer[T]
	Deployments cache.TypedSharedIndexInformer[*appsv1.Deployment]
	// Client writes Deployments.
	Client appsv1client.DeploymentsGetter
	// Writes is the transport of all writes of the controller. It also counts the writes
	// that were not needed. It may be nil.
	Writes *writes.Transport
	// Consistency covers the objects. All controllers that write to them share it.
	Consistency *reconcile.ConsistencyStore
	// Recorder records Events about the objects.
	Recorder record.EventRecorder
	// CountStates counts the objects in a metric by the state that stateOf returns, which is
	// one of states. It may be nil.
	CountStates func(states []controller.State, stateOf func(obj any) controller.State)
	// Loop has the options of the reconcile loop.
	Loop []reconcile.Option
}

// Controller keeps the Deployments of the objects of one kind and writes the objects'
// statuses.
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
	pace        *reconcile.Pace
	refusals    *StatusRefusals[T]
	statuses    string // the resource, as metrics name it
	loop        *reconcile.Loop
}

// NewController returns the controller of a kind. The name is also its field manager.
// NewController adds indexes to the informers, so call it before they are started.
func NewController[T Object](name string, kind Kind[T], o Options[T]) (*Controller[T], error) {
	err := o.Objects.AddTypedIndexers(cache.TypedIndexers[T]{
		byDeployment: func(obj T) ([]string, error) {
			if tolerant.DecodeError(obj) != nil {
				return nil, nil // its spec is unknown
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
		pace:        reconcile.NewPace(statusDelay, clock.RealClock{}),
		statuses:    kind.StatusResource().String(),
	}
	c.refusals = NewStatusRefusals(c.statuses, o.Writes, o.Recorder, c.exists)
	if o.CountStates != nil {
		o.CountStates(States(), c.state)
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

// Loop returns the controller's loop, so that callers can add watches before it runs.
func (c *Controller[T]) Loop() *reconcile.Loop { return c.loop }

// Loops implements supervisor.Looper.
func (c *Controller[T]) Loops() []*reconcile.Loop { return c.loop.Loops() }

// concerned returns the keys of the objects to enqueue for a Deployment: its owner, and the
// objects that name it and may be waiting for its deletion.
func (c *Controller[T]) concerned(deployment *appsv1.Deployment) []cache.ObjectName {
	keys := ownership.OwnerKeys(c.kind.GroupVersionKind(), deployment)
	// The constructor added the index, so there is no error.
	named, _ := c.objects.ByTypedIndex(byDeployment, deploymentKey(deployment.Namespace, deployment.Name))
	for _, obj := range named {
		keys = append(keys, cache.MetaObjectToName(obj))
	}
	return keys
}

func deploymentKey(namespace, name string) string { return namespace + "/" + name }
