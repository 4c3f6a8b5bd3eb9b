// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
)

// Workload keeps the Deployments of the objects of one kind, and writes their statuses. Make it with [New].
type Workload[T controller.Object] struct {
	// Objects builds the controller. A kind may declare more with it, before it calls Controller.
	Objects *controller.Builder[T]
	// Deployments are those that the objects own.
	Deployments *controller.Owned[*appsv1.Deployment, T]
	// Named reads Deployments by name, whoever owns them.
	Named *controller.Reader[*appsv1.Deployment]

	extra   Extra[T]
	adapter Adapter[T]
	manager string
}

// Extra is the part of a status that only one kind has. Its methods are called concurrently, but for
// one object at a time, except Facts.
type Extra[T controller.Object] interface {
	// Set sets that part of the status of obj, a copy. The rest of the status is set already.
	Set(r *controller.Request[T], obj T)
	// Facts returns what the status pages say of it. obj is a copy.
	Facts(r *controller.Request[T], obj T) []controller.Fact
	// Forget is called when the object no longer exists.
	Forget(r *controller.Request[T])
}

// New declares what the controller of a kind reads and writes. [Workload.Controller] makes the
// controller of it, and reports errors of the declarations.
func New[T controller.Object](c *controller.Context, adapter Adapter[T]) *Workload[T] {
	w := &Workload[T]{adapter: adapter, manager: c.Name()}
	deployments := CachedDeployments(c)
	w.Objects = controller.For[T](c, Cached[T](), controller.MayPatchStatus())
	w.Deployments = controller.Owns[*appsv1.Deployment](w.Objects, deployments...)
	w.Named = controller.Refers[*appsv1.Deployment](w.Objects, func(obj T) []string {
		return []string{adapter.Spec(obj).DeploymentName}
	}, deployments...)
	w.Deployments.DescribeContests(func(obj T, d *appsv1.Deployment, f controller.Failure) (reason, message string) {
		return adapter.Owner(obj).describe(d, f)
	})
	w.Objects.OnDeletion()
	w.Objects.Count(States(), adapter.state)
	w.Objects.Explain(w.explain)
	w.Objects.Paced(statusDelay, func(before, after T) controller.Change {
		return changeOf(*adapter.Status(before), *adapter.Status(after))
	})
	return w
}

// Controller returns the controller. extra is what only this kind has in its status; nil if there is
// nothing. It returns an error if the library refuses a declaration; later ones are refused, too.
func (w *Workload[T]) Controller(extra Extra[T]) (controller.Controller, error) {
	w.extra = extra
	return w.Objects.Reconcile(w.reconcile)
}

// reconcile keeps the Deployment of an object, then writes its status, which also reports a write that keeps
// failing.
func (w *Workload[T]) reconcile(ctx context.Context, r *controller.Request[T]) error {
	obj, ok := r.Object()
	if !ok {
		if w.extra != nil {
			w.extra.Forget(r)
		}
		return nil
	}
	state, err := w.keep(ctx, r, w.adapter.Owner(obj))
	if err != nil && !lasts(err) {
		return err // the state is unknown, so there is nothing to report
	}
	r.RequeueAfter(state.Again)
	return w.writeStatus(ctx, r, obj, state) // it reports err, so the sync has not failed
}

// writeStatus writes the status of the object, and records an Event if it became ready or stalled.
func (w *Workload[T]) writeStatus(ctx context.Context, r *controller.Request[T], obj T, state State) error {
	o, status, now := w.adapter.Owner(obj), w.adapter.Status(obj), metav1.Now()
	before := status.Conditions
	*status = NewStatus(o, state, *status, now)
	event := newEvent(o, before, status.Conditions)
	r.RequeueAfter(stallsIn(state.Deployment, status.UnavailableSince, now.Time))
	if w.extra != nil {
		w.extra.Set(r, obj)
	}
	if err := r.UpdateStatus(ctx, obj); err != nil || event == nil {
		return err
	}
	if written, _ := r.Object(); written.GetResourceVersion() != obj.GetResourceVersion() {
		r.Event(event.Type, event.Reason, "%s", event.Message)
	}
	return nil
}
