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
	eventrecord "k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
	"samplecontroller.io/sample-controller-manager/pkg/podrecord"
	"samplecontroller.io/sample-controller-manager/pkg/workload"
)

// ControllerName is the name of the controller in --controllers, its queue, metrics, logs and
// health check. It is also its field manager and user agent.
const ControllerName = "status-aggregator-controller"

// Options configure a [Controller], for all kinds.
type Options struct {
	// Informers are those of the Pods and their owners.
	Informers ownership.Informers
	// Interval is the minimum time between two writes of one object.
	Interval time.Duration
	// Recorder records Events about the objects.
	Recorder eventrecord.EventRecorder
	// Writes is the transport of all writes of the controller. It also counts the writes
	// that were not needed. It may be nil.
	Writes *writes.Transport
	// Loop has the options of the reconcile loops.
	Loop []reconcile.Option
}

// Controller writes the Pod summaries. It has a loop for each kind, so that an unavailable
// API of one kind does not delay the others.
type Controller struct {
	loops    []*reconcile.Loop
	explains []explain
}

// NewController returns the controller. It adds indexes to the informers, so call it before
// they are started.
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

// KindOptions configure the controller for one kind: see [Foos] and [Icecreams].
type KindOptions func(Options, *ownership.Chain) (*reconcile.Loop, explain)

// newLoop returns the loop for one kind.
func newLoop[T workload.Object](kind kind[T], objects cache.TypedSharedIndexInformer[T], consistency *reconcile.ConsistencyStore) KindOptions {
	return func(o Options, chain *ownership.Chain) (*reconcile.Loop, explain) {
		gvk := kind.groupVersionKind
		a := &aggregator[T]{
			kind:        kind,
			statuses:    schema.GroupResource{Group: gvk.Group, Resource: kind.resource + "/status"}.String(),
			objects:     objects.GetTypedIndexer(),
			chain:       chain,
			writes:      o.Writes,
			consistency: consistency,
			pace:        reconcile.NewPace(o.Interval, clock.RealClock{}),
			interval:    o.Interval,
		}
		a.refusals = workload.NewStatusRefusals(a.statuses, o.Writes, o.Recorder, kind.exists)
		loop := reconcile.New(ControllerName, a.sync, slices.Concat(o.Loop, []reconcile.Option{reconcile.WithQueue(ControllerName + "-" + kind.resource)})...)
		// Each Run of the loop begins with all objects, throttled or not: an addition
		// always enqueues the object.
		ofPod, ofReplicaSet := chain.OfPod(gvk), chain.OfReplicaSet(gvk)
		reconcile.WatchChanges(loop, objects, a.mayWrite, func(obj T) []cache.ObjectName {
			return []cache.ObjectName{cache.MetaObjectToName(obj)}
		})
		reconcile.WatchChanges(loop, o.Informers.Pods, saysOther, func(pod *podrecord.Record) []cache.ObjectName {
			return a.unthrottled(ofPod(pod))
		})
		reconcile.Watch(loop, o.Informers.ReplicaSets, func(rs *metav1.PartialObjectMetadata) []cache.ObjectName {
			return a.unthrottled(ofReplicaSet(rs))
		})
		reconcile.WatchChanges(loop, o.Informers.Deployments, mayBeReportedInstead, func(d *appsv1.Deployment) []cache.ObjectName {
			return a.unthrottled(ownership.OwnerKeys(gvk, d))
		})
		return loop, a.explain
	}
}

// mayWrite reports whether a changed object is not throttled after a write. The informer may
// report a re-created object as changed.
func (a *aggregator[T]) mayWrite(_, now T) bool {
	return a.pace.Throttled(cache.MetaObjectToName(now), now.GetUID()) == 0
}

// unthrottled returns the keys of objects that are not throttled after a write. A throttled
// object is synced at the end of its interval anyway. Enqueuing it earlier would cost a
// sync that can do nothing, for each change of a Pod.
func (a *aggregator[T]) unthrottled(keys []cache.ObjectName) []cache.ObjectName {
	return slices.DeleteFunc(keys, func(key cache.ObjectName) bool { return a.pace.Throttled(key, "") > 0 })
}

func saysOther(before, now *podrecord.Record) bool { return !before.Same(now) }

// mayBeReportedInstead reports whether a change of a Deployment may change which Deployment the
// status of an object describes.
func mayBeReportedInstead(before, now *appsv1.Deployment) bool {
	a, b := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(now)
	return before.UID != now.UID || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		(a == nil) != (b == nil) || a != nil && a.UID != b.UID
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
			// If one loop ends, stop all.
			defer cancel()
			errs[i] = loop.Run(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
