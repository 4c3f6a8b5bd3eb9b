// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
)

// State is the state of an owner's Deployment after a reconcile.
type State struct {
	// Deployment is the Deployment that the status describes, as cached or, after a write, as
	// the API server returned it: see [Owner.Reported]. It is nil if there is none. It is
	// read-only.
	Deployment *appsv1.Deployment
	// Former are the Deployments of former names that stay unless somebody deletes them, the
	// newest first. They are read-only.
	Former []*appsv1.Deployment
	// Blocker is why the Deployment is missing or not as declared, nil if nothing is wrong.
	Blocker *blocker
	// Again is the delay before the next reconcile without an event. 0 means that none is
	// needed.
	Again time.Duration
}

// keep makes the Deployment of the owner as declared, by one write or, if nothing differs, none. If err
// [lasts], the state says why.
func (w *Workload[T]) keep(ctx context.Context, r *controller.Request[T], o Owner) (State, error) {
	view := w.view(r, o)
	decision, state := w.decide(o, view)
	if d := state.Deployment; !decision.writes() && d != nil && o.GetDeletionTimestamp() == nil {
		_, err := w.Deployments.Patch(ctx, r, d) // counts a write that is not needed, and finds contests
		state.Blocker = w.blocker(r, d, decision)
		return state, err
	}
	written, err := w.write(ctx, r, o, decision)
	if written != nil {
		state.Deployment, state.Blocker = written, w.blocker(r, written, decision)
		if decision.Create != nil && written.Name == decision.Create.Name {
			state.Former = leftOver(view.Former)
			w.tellFormer(r, o, state.Former)
		}
	}
	if err != nil {
		state.Blocker = o.failed(err)
	}
	return state, err
}

// view returns the cached Deployments of the owner.
func (w *Workload[T]) view(r *controller.Request[T], o Owner) view {
	view := view{Former: o.former(w.Deployments.List(r)), Now: time.Now()}
	if live, ok := w.Named.Get(o.GetNamespace(), o.DeploymentName); ok {
		view.Live = live
	}
	return view
}

// decide decides what to do for the owner, and returns the state if nothing is written.
func (w *Workload[T]) decide(o Owner, view view) (decision decision, state State) {
	state.Deployment = view.reported(o)
	if view.own(o) != nil {
		state.Former = leftOver(view.Former)
	}
	decision = decide(o, view)
	state.Again, state.Blocker = decision.Again, decision.Blocker
	return decision, state
}

// blocker returns the blocker of a decision or, if it has none, the contest of the Deployment.
func (w *Workload[T]) blocker(r *controller.Request[T], d *appsv1.Deployment, decision decision) *blocker {
	if decision.Blocker != nil || d == nil {
		return decision.Blocker
	}
	if contest := w.Deployments.Contest(r, d.Name); contest != nil {
		return &blocker{Reason: contest.Reason, Message: contest.Message}
	}
	return nil
}

// write carries out a decision, by one write at most that succeeds. One that keeps failing does not hold back
// the next.
func (w *Workload[T]) write(ctx context.Context, r *controller.Request[T], o Owner, d decision) (*appsv1.Deployment,
	error) {
	var failed error
	if d.Create != nil {
		created, err := w.create(ctx, r, o, d)
		if err == nil || !lasts(err) {
			return created, err
		}
		failed = err
	}
	if d.Correct == nil {
		return nil, failed
	}
	corrected, err := w.correct(ctx, r, o, d.Correct, d.Differing)
	if err != nil && !lasts(err) {
		return nil, err
	}
	return corrected, errors.Join(failed, err)
}

// create creates a Deployment. It returns the one that the cache has got since the decision, if there is one.
func (w *Workload[T]) create(ctx context.Context, r *controller.Request[T], o Owner,
	d decision) (*appsv1.Deployment, error) {
	isNew := false
	created, err := w.Deployments.Ensure(ctx, r, d.Create.Name, func(found *appsv1.Deployment) {
		if isNew = found.UID == ""; isNew {
			found.Spec = d.Create.Spec
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !isNew:
		return created, nil
	}
	if d.Recreates {
		r.Event(corev1.EventTypeNormal, eventRecreated, "Deployment %q was deleted, and is created again", created.Name)
	}
	return created, nil
}

// correct sets the differing fields of a Deployment, together unless that is denied: then one does not hold
// back the other.
func (w *Workload[T]) correct(ctx context.Context, r *controller.Request[T], o Owner, d *appsv1.Deployment,
	fields fieldSet) (*appsv1.Deployment, error) {
	corrected, err := w.set(ctx, r, o, d, fields)
	if !fields.several() || !isDenied(err) {
		return corrected, err
	}
	for f := range fieldCount {
		one := fieldSet{}
		one[f] = true
		corrected, oneErr := w.set(ctx, r, o, d, one)
		switch {
		case oneErr == nil:
			return corrected, err
		case !lasts(oneErr):
			return nil, oneErr
		}
	}
	return nil, err
}

// set sets fields of a Deployment to what the owner declares.
func (w *Workload[T]) set(ctx context.Context, r *controller.Request[T], o Owner, d *appsv1.Deployment,
	fields fieldSet) (*appsv1.Deployment, error) {
	wanted := d.DeepCopy()
	o.declare(wanted, fields)
	patched, err := w.Deployments.Patch(ctx, r, wanted)
	if err != nil {
		return nil, err
	}
	for f := range fieldCount {
		if fields[f] && o.isCorrected(d, patched, f, w.manager) {
			r.Event(corev1.EventTypeNormal, eventCorrected, "%s", bounded(correctedMessage(d, patched, f, w.manager)))
		}
	}
	return patched, nil
}

// tellFormer records an Event about the Deployments that are left after a rename.
func (w *Workload[T]) tellFormer(r *controller.Request[T], o Owner, former []*appsv1.Deployment) {
	if len(former) > 0 {
		r.Event(corev1.EventTypeWarning, eventFormerDeployment, "%s", bounded(o.leftOverMessage(former)))
	}
}

// lasts reports whether an error of a write is reported in the status: it is denied, or has failed for long.
func lasts(err error) bool {
	_, ok := errors.AsType[*controller.Failure](err)
	return ok || isTerminating(err)
}

// isDenied reports whether a quota, a policy or a webhook denied a write, or the API server its contents.
func isDenied(err error) bool {
	failure, ok := errors.AsType[*controller.Failure](err)
	return ok && failure.Reason == controller.ReasonWriteDenied
}

// isTerminating reports whether a write was denied because its namespace is being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// failed returns the blocker for an error that [lasts].
func (o Owner) failed(err error) *blocker {
	if failure, ok := errors.AsType[*controller.Failure](err); ok {
		return &blocker{Reason: failure.Reason, Message: failure.Message}
	}
	return &blocker{
		Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
		Message: fmt.Sprintf("namespace %q is being deleted, and %s with it", o.GetNamespace(), o),
	}
}
