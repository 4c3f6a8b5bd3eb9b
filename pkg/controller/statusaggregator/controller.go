// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
)

// ControllerName is the one name of the controller: in --controllers, queue,
// metrics, logs and health checks, as field manager and user agent.
const ControllerName = "status-aggregator-controller"

// Options are what the controller is made of, whatever its kinds.
type Options struct {
	// Informers are what it reads of Pods.
	Informers ownership.Informers
	// Interval is how long after a write of an object the next one may come.
	Interval time.Duration
	// Writes is what all that the controller writes passes through, and is told of
	// what it need not write; it may be nil.
	Writes *writes.Transport
	// Loop is how its loops work.
	Loop []reconcile.Option
}

// Controller aggregates what Pods say. It has a loop for each kind, so that one whose
// API is not there keeps no other waiting.
type Controller struct {
	loops    []*reconcile.Loop
	explains []explain
}

// NewController returns the controller. It adds indexes to the informers, so it must
// be called before they are started.
func NewController(o Options, kinds ...KindOptions) (*Controller, error) {
	chain, err := ownership.NewChain(o.Informers)
	if err != nil {
		return nil, err
	}
	c := &Controller{}
	for _, kind := range kinds {
		loop, explain := kind(o, chain)
		c.loops, c.explains = append(c.loops, loop), append(c.explains, explain)
	}
	return c, nil
}

// KindOptions are what the controller is made of for one kind: see [Foos] and
// [Icecreams].
type KindOptions func(Options, *ownership.Chain) (*reconcile.Loop, explain)

// newLoop returns the loop for one kind.
func newLoop[T object](kind kind[T], objects cache.TypedSharedIndexInformer[T], consistency *reconcile.ConsistencyStore) KindOptions {
	return func(o Options, chain *ownership.Chain) (*reconcile.Loop, explain) {
		gvk := kind.groupVersionKind
		a := &aggregator[T]{
			kind:        kind,
			statuses:    schema.GroupResource{Group: gvk.Group, Resource: kind.resource + "/status"}.String(),
			objects:     objects.GetTypedIndexer(),
			chain:       chain,
			writes:      o.Writes,
			consistency: consistency,
			pace:        &pace{interval: o.Interval, clock: clock.RealClock{}, objects: map[cache.ObjectName]times{}},
		}
		loop := reconcile.New(ControllerName, a.sync, slices.Concat(o.Loop, []reconcile.Option{reconcile.WithQueue(ControllerName + "-" + kind.resource)})...)
		// Each Run of the loop begins with all objects, throttled or not: an addition enqueues
		// the object in any case.
		ofPod, ofReplicaSet := chain.OfPod(gvk), chain.OfReplicaSet(gvk)
		reconcile.WatchChanges(loop, objects, func(_, now T) bool { return !a.pace.throttled(cache.MetaObjectToName(now)) }, func(obj T) []cache.ObjectName {
			return []cache.ObjectName{cache.MetaObjectToName(obj)}
		})
		reconcile.WatchChanges(loop, o.Informers.Pods, saysOther, func(pod *podrecord.Record) []cache.ObjectName {
			return a.unthrottled(ofPod(pod))
		})
		reconcile.Watch(loop, o.Informers.ReplicaSets, func(rs *metav1.PartialObjectMetadata) []cache.ObjectName {
			return a.unthrottled(ofReplicaSet(rs))
		})
		reconcile.WatchChanges(loop, o.Informers.Deployments, hasOtherOwner, func(d *appsv1.Deployment) []cache.ObjectName {
			return a.unthrottled(ownership.OwnerKeys(gvk, d))
		})
		return loop, a.explain
	}
}

// unthrottled returns the keys of objects that are not throttled after a write. The others are
// synced at the end of their interval in any case: to enqueue them before would cost, for each
// change of a Pod, a sync that could do nothing.
func (a *aggregator[T]) unthrottled(keys []cache.ObjectName) []cache.ObjectName {
	return slices.DeleteFunc(keys, a.pace.throttled)
}

func saysOther(before, now *podrecord.Record) bool { return !before.Same(now) }

func hasOtherOwner(before, now *appsv1.Deployment) bool {
	a, b := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(now)
	return before.UID != now.UID || (a == nil) != (b == nil) || a != nil && a.UID != b.UID
}

// Name implements controller.Controller.
func (c *Controller) Name() string { return ControllerName }

// Loops implements supervisor.Looper.
func (c *Controller) Loops() []*reconcile.Loop { return c.loops }

// Run implements controller.Controller.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	errs := make([]error, len(c.loops))
	for i, loop := range c.loops {
		running.Go(func() {
			// One that ends ends all.
			defer cancel()
			errs[i] = loop.Run(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
