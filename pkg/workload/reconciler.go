// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	denials      denials
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
		corrections: corrections{utilcache.NewExpiring()}, denials: denials{utilcache.NewExpiring()}, confirmed: confirmations{owners: owners},
	}, nil
}

// Begin begins a term. Another process may have written since the last one. Begin must not
// be called during a [Reconciler.Reconcile].
func (k *Reconciler) Begin() { k.confirmed.begin() }

// Forget forgets an owner that is gone.
func (k *Reconciler) Forget(key cache.ObjectName) { k.confirmed.forget(key) }

// State is the state of an owner's Deployment after a reconcile.
type State struct {
	// Deployment is the Deployment that the owner owns: as cached or, after a write, as the
	// API server returned it. It is nil if there is none. It is read-only.
	Deployment *appsv1.Deployment
	// Former is the newest Deployment that the owner owns under a former name, nil if there
	// is none. It is read-only.
	Former *appsv1.Deployment
	// Written is set if Deployment was just written, so that the cache may not have it yet.
	Written bool
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
// If the API server denies the write on its merits, the State has the blocker and the delay
// before the retry. An error for which [apierrors.IsConflict] holds,
// or [reconcile.ErrStale], means that the cache was stale. With an error, only Refused and
// Unknown of the State are meaningful.
func (k *Reconciler) Reconcile(ctx context.Context, o Owner) (State, error) {
	view, err := k.view(o)
	if err != nil {
		return State{}, fmt.Errorf("reading Deployments of %s: %w", o, err)
	}
	view.Hold, _, _ = k.corrections.of(o, view.Live, k.clock.Now())
	decision := Decide(o, view)
	write := decision.write(o)
	if blocker, again := k.denials.of(o, write, k.clock.Now()); blocker != nil {
		return State{Deployment: view.Live, Blocker: blocker, Again: again}, nil
	}
	if write.verb == "" && decision.Blocker == nil && !view.Hold.any() {
		k.writes.Skip(deploymentResource.String())
	}
	// An error here is not from a write, so it is not a denial.
	if err := k.confirmOwner(ctx, o, view, write); err != nil {
		return State{}, err
	}
	if decision.Create != nil && view.former() != nil {
		if state, err := k.readFormer(ctx, view); err != nil {
			return state, err
		}
		decision = Decide(o, view)
	}
	state, err := k.carryOut(ctx, o, view, decision)
	if denialOf(err) != nil {
		return k.denied(ctx, o, view, write, err)
	}
	k.denials.forget(o)
	if err != nil {
		return state, err
	}
	state.Former = view.former()
	if state.Blocker == nil {
		state.Blocker = decision.Blocker
	}
	if state.Deployment != nil && o.GetDeletionTimestamp() == nil {
		var contest *Blocker
		// A field is held and written again even if another blocker hides that.
		if _, contest, state.Again = k.corrections.of(o, state.Deployment, k.clock.Now()); state.Blocker == nil {
			state.Blocker = contest
		}
	}
	return state, nil
}

// denied returns the state of an owner's Deployment after a denied write.
func (k *Reconciler) denied(ctx context.Context, o Owner, view View, denied write, err error) (State, error) {
	blocker, again := k.denials.note(o, denied, err, k.clock.Now())
	if blocker == nil {
		return State{}, err
	}
	verbosity := 2
	if again > firstRetry {
		verbosity = 4 // the status has the reason, and one line per owner is enough
	}
	klog.FromContext(ctx).V(verbosity).Info("Write was denied, trying again later", "err", err, "after", again)
	return State{Deployment: view.Live, Blocker: blocker, Again: again}, nil
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
	for _, d := range owned {
		if d.Name != o.DeploymentName {
			view.Former = append(view.Former, d)
		}
	}
	slices.SortFunc(view.Former, func(a, b *appsv1.Deployment) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return view, nil
}

// carryOut carries out a decision about the view.
func (k *Reconciler) carryOut(ctx context.Context, o Owner, view View, decision Decision) (State, error) {
	switch {
	case decision.Create != nil:
		return k.create(ctx, o, decision.Create)
	case decision.Patch != nil:
		return k.patch(ctx, o, view.Live, decision)
	case decision.Delete != nil:
		return k.delete(ctx, o, view.Live, decision.Delete)
	default:
		return State{Deployment: view.own(o), Blocker: decision.Blocker}, nil
	}
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
	return State{Deployment: created, Written: true}, nil
}

// patch sends the patch of the decision.
func (k *Reconciler) patch(ctx context.Context, o Owner, live *appsv1.Deployment, decision Decision) (State, error) {
	patched, err := k.client.Deployments(live.Namespace).Patch(ctx, live.Name, types.StrategicMergePatchType, decision.Patch, metav1.PatchOptions{FieldManager: k.fieldManager})
	if err != nil {
		return notWritten(o, "patching", live, err)
	}
	for f := range fieldCount {
		if decision.Patched[f] {
			k.corrections.note(o, f, live, patched, k.fieldManager, k.clock.Now())
		}
	}
	klog.FromContext(ctx).V(2).Info("Patched Deployment", "deployment", klog.KObj(patched), "replicas", replicasOf(patched))
	return State{Deployment: patched, Written: true}, nil
}

// notWritten returns the result of a failed write of a Deployment.
func notWritten(o Owner, doing string, d *appsv1.Deployment, err error) (State, error) {
	if isLate(err, d) {
		if apierrors.IsNotFound(err) {
			err = stale(d.Name, err)
		}
		return State{Refused: d}, err
	}
	return State{}, fmt.Errorf("%s Deployment %q of %s: %w", doing, d.Name, o, err)
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
