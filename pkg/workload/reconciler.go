// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"samplecontroller.io/controller-manager/reconcile"
	"samplecontroller.io/controller-manager/writes"

	"samplecontroller.io/sample-controller-manager/pkg/ownership"
)

// deploymentResource is the resource of Deployments.
var deploymentResource = appsv1.Resource("deployments")

// Reconciler keeps the Deployments of the owners of one controller. It is safe for
// concurrent use, but only by one goroutine per owner.
type Reconciler struct {
	deployments  cache.TypedIndexer[*appsv1.Deployment]
	client       appsv1client.DeploymentsGetter
	writes       *writes.Transport
	fieldManager string
	clock        clock.PassiveClock
	corrections  corrections
	failures     failures
	confirmed    confirmations
}

// NewReconciler returns a reconciler that reads from the informer and writes with the
// client as fieldManager. transport is that of the client's writes; it may be nil. owners
// is the store of the owners. NewReconciler indexes the informer, so call it before the
// informer is started. The index may already exist.
func NewReconciler(owners reconcile.VersionedStore, deployments cache.TypedSharedIndexInformer[*appsv1.Deployment], client appsv1client.DeploymentsGetter, transport *writes.Transport, fieldManager string) (*Reconciler, error) {
	if err := ownership.Index(deployments); err != nil {
		return nil, fmt.Errorf("Deployments: %w", err)
	}
	return &Reconciler{
		deployments: deployments.GetTypedIndexer(), client: client, writes: transport, fieldManager: fieldManager, clock: clock.RealClock{},
		corrections: corrections{utilcache.NewExpiring()}, failures: failures{utilcache.NewExpiring()}, confirmed: confirmations{owners: owners},
	}, nil
}

// Begin begins a term. Another process may have written since the last one. Begin must not
// be called during a [Reconciler.Reconcile].
func (k *Reconciler) Begin() {
	k.confirmed.begin()
	k.failures.begin()
}

// Forget forgets an owner that is gone.
func (k *Reconciler) Forget(key cache.ObjectName) { k.confirmed.forget(key) }

// State is the state of an owner's Deployment after a reconcile.
type State struct {
	// Deployment is the Deployment that the status describes, as cached or, after a write, as
	// the API server returned it: see [Owner.Reported]. It is nil if there is none. It is
	// read-only.
	Deployment *appsv1.Deployment
	// Former are the Deployments of former names that stay unless somebody deletes them, the
	// newest first. They are read-only.
	Former []*appsv1.Deployment
	// Written is set if Deployment was just written, so that the cache may not have it yet.
	Written bool
	// Created is set if Deployment was just created.
	Created bool
	// Refused is the cached Deployment if a write was refused because it is outdated.
	Refused *appsv1.Deployment
	// Unknown is the Deployment on the API server if it could not be created because it
	// already exists there, and the cache does not have it.
	Unknown *appsv1.Deployment
	// Blocker is why the Deployment is missing or not as declared, nil if nothing is wrong.
	Blocker *Blocker
	// Again is the delay before the next reconcile without an event. 0 means that none is
	// needed.
	Again time.Duration
}

// Reconcile reconciles the Deployment of the owner with one write, or with none if nothing
// differs.
//
// If a write fails and that is to be reported, Reconcile goes on with the next one, so that a write
// which keeps failing does not hold back others. The State then has the blocker and the delay before
// the retry: see failures. An error for which [apierrors.IsConflict] holds, or [reconcile.ErrStale],
// means that the cache was stale. With an error, only Refused and Unknown of the State are
// meaningful.
func (k *Reconciler) Reconcile(ctx context.Context, o Owner) (State, error) {
	view, err := k.view(o)
	if err != nil {
		return State{}, fmt.Errorf("reading Deployments of %s: %w", o, err)
	}
	var failed State
	for {
		p := k.plan(o, view)
		if p.next.verb == "" {
			if p.state.Blocker == nil {
				k.writes.Skip(deploymentResource.String())
			}
			p.state.Refused, p.state.Unknown = failed.Refused, failed.Unknown
			return p.state, nil
		}
		// An error here is not from a write, so it does not count as a failure of one.
		if err := k.confirmOwner(ctx, o, view, p.next); err != nil {
			return failed, err
		}
		state, err := k.carryOut(ctx, o, p.next)
		if err == nil {
			state = k.written(o, view, p, state)
			state.Refused, state.Unknown = failed.Refused, failed.Unknown
			return state, nil
		}
		if !k.report(ctx, o, p.next, err) {
			return state, err
		}
		failed = state // the next plan holds this write back
	}
}

// written returns the state after a successful write, which the cache does not have yet.
func (k *Reconciler) written(o Owner, view View, p plan, state State) State {
	k.failures.forget(o, p.next)
	state.Written, state.Former, state.Again = true, p.state.Former, p.state.Again
	if state.Created {
		state.Former = leftOver(view.Former)
	}
	if state.Blocker = p.blocker; state.Blocker == nil {
		var again time.Duration
		_, state.Blocker, again = k.corrections.of(o, state.Deployment, k.clock.Now())
		state.Again = sooner(state.Again, again)
	}
	return state
}

// report notes a failed write, and reports whether the state of the owner is to say so.
func (k *Reconciler) report(ctx context.Context, o Owner, w write, err error) bool {
	if w.isMissingPermission(err) {
		return false // this is about the controller, not about the owner
	}
	blocker, again := k.failures.note(o, w, err, k.clock.Now())
	if blocker != nil {
		klog.FromContext(ctx).V(2).Info("Write failed, trying again later", "err", err, "after", again)
	}
	return blocker != nil
}

// view returns the cached Deployments of the owner.
func (k *Reconciler) view(o Owner) (View, error) {
	var view View
	object, exists, err := k.deployments.GetByKey(o.GetNamespace() + "/" + o.DeploymentName)
	if err != nil {
		return View{}, err
	}
	if exists {
		view.Live = object.(*appsv1.Deployment)
	}
	owned, err := ownership.Owned(k.deployments, o.GetNamespace(), o.GetUID())
	if err != nil {
		return View{}, err
	}
	view.Former = o.former(owned)
	return view, nil
}

// carryOut carries out a write.
func (k *Reconciler) carryOut(ctx context.Context, o Owner, w write) (State, error) {
	if k.failures.timedOut(o, w) {
		ctx = reconcile.WithLongWrite(ctx)
	}
	if w.verb == "create" {
		return k.create(ctx, o, w.deployment)
	}
	return k.patch(ctx, o, w.deployment, w.fields)
}

func (k *Reconciler) create(ctx context.Context, o Owner, deployment *appsv1.Deployment) (State, error) {
	created, err := k.client.Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{FieldManager: k.fieldManager})
	if apierrors.IsAlreadyExists(err) && denialOf(err) == nil {
		// The cache will show whose it is.
		existing, getErr := k.get(ctx, deployment.Namespace, deployment.Name)
		if getErr != nil {
			return State{}, getErr
		}
		return State{Unknown: existing}, stale(deployment.Name, err)
	}
	if err != nil {
		return State{}, fmt.Errorf("creating Deployment %q of %s: %w", deployment.Name, o, err)
	}
	for f := range fieldCount {
		k.corrections.note(o, f, nil, created, k.fieldManager, k.clock.Now())
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return State{Deployment: created, Created: true}, nil
}

// patch sets the fields of the Deployment to what the owner declares.
func (k *Reconciler) patch(ctx context.Context, o Owner, d *appsv1.Deployment, fields Fields) (State, error) {
	patched, err := k.client.Deployments(d.Namespace).Patch(ctx, d.Name, types.StrategicMergePatchType, o.patch(d, fields),
		metav1.PatchOptions{FieldManager: k.fieldManager})
	if isLate(err, d) {
		if apierrors.IsNotFound(err) {
			err = stale(d.Name, err)
		}
		return State{Refused: d}, err
	}
	if err != nil {
		return State{}, fmt.Errorf("patching Deployment %q of %s: %w", d.Name, o, err)
	}
	for f := range fieldCount {
		if fields[f] {
			k.corrections.note(o, f, d, patched, k.fieldManager, k.clock.Now())
		}
	}
	klog.FromContext(ctx).V(2).Info("Patched Deployment", "deployment", klog.KObj(patched), "replicas", replicasOf(patched))
	return State{Deployment: patched}, nil
}

// get reads the Deployment from the API server. It returns nil if there is none. It uses a
// list of one object, because the list permission is needed anyway.
func (k *Reconciler) get(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	found, err := k.client.Deployments(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", name, err)
	}
	for i := range found.Items {
		if found.Items[i].Name == name {
			return &found.Items[i], nil
		}
	}
	return nil, nil
}

// stale returns a conflict that wraps an error which shows that the cache is stale.
func stale(name string, err error) error {
	return apierrors.NewConflict(deploymentResource, name, err)
}
