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

// deploymentResource is what Deployments are called in the API.
var deploymentResource = appsv1.Resource("deployments")

// Reconciler keeps the Deployments of the owners of one controller. It may be used by
// several goroutines, each for another owner.
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

// NewReconciler returns a reconciler that reads from the informer and writes with the client under
// the name of fieldManager. What the client writes passes through the transport, which may
// be nil. The owners that it is given come from the store. It adds an index to the
// informer, so it must be called before that is started; others may have added it before.
func NewReconciler(owners reconcile.VersionedStore, deployments cache.TypedSharedIndexInformer[*appsv1.Deployment], client appsv1client.DeploymentsGetter, transport *writes.Transport, fieldManager string) (*Reconciler, error) {
	if err := ownership.Index(deployments); err != nil {
		return nil, fmt.Errorf("Deployments: %w", err)
	}
	return &Reconciler{
		deployments: deployments.GetTypedIndexer(), client: client, writes: transport, fieldManager: fieldManager, clock: clock.RealClock{},
		corrections: corrections{utilcache.NewExpiring()}, denials: denials{utilcache.NewExpiring()}, confirmed: confirmations{owners: owners},
	}, nil
}

// Begin begins a term: since the last one, another process may have written. It must not
// be called while owners are kept.
func (k *Reconciler) Begin() { k.confirmed.begin() }

// Forget forgets an owner that is gone.
func (k *Reconciler) Forget(key cache.ObjectName) { k.confirmed.forget(key) }

// State is what became of an owner's Deployment.
type State struct {
	// Deployment is the owner's own as last seen, after a write as the API server
	// returned it; nil if there is none. It is read-only.
	Deployment *appsv1.Deployment
	// Former is the newest Deployment that the owner owns under another name, nil if
	// there is none. It is read-only.
	Former *appsv1.Deployment
	// Written says that Deployment was written just now, so that the cache may not
	// have it yet.
	Written bool
	// Refused is the Deployment as the cache has it, if a write of it was refused
	// because it is no longer so.
	Refused *appsv1.Deployment
	// Unknown is the Deployment as the API server has it, if the cache has none and
	// it could not be created for that.
	Unknown *appsv1.Deployment
	// Blocker is why the Deployment is not there or not as declared; nil if
	// nothing is in the way.
	Blocker *Blocker
	// Again is after how long to look again although nothing enqueues the owner; 0:
	// there is no need to.
	Again time.Duration
}

// Reconcile brings the Deployment of the owner to where it should be, with one write
// if something differs and none if nothing does.
//
// If the API server denies the write on its merits, the State says so, and when to
// try again. An error for which [apierrors.IsConflict] holds, or [reconcile.ErrStale],
// means that the cache was late. With an error the State says nothing but what the cache
// is late for.
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
	// What fails here is no write, so none of it is a denial.
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
	if state.Blocker == nil {
		_, state.Blocker, state.Again = k.corrections.of(o, state.Deployment, k.clock.Now())
	}
	return state, nil
}

// denied returns what became of an owner's Deployment whose write was denied.
func (k *Reconciler) denied(ctx context.Context, o Owner, view View, denied write, err error) (State, error) {
	blocker, again := k.denials.note(o, denied, err, k.clock.Now())
	if blocker == nil {
		return State{}, err
	}
	verbosity := 2
	if again > firstRetry {
		verbosity = 4 // the status says it, and one line for each owner is enough
	}
	klog.FromContext(ctx).V(verbosity).Info("Write was denied, trying again later", "err", err, "after", again)
	return State{Deployment: view.Live, Blocker: blocker, Again: again}, nil
}

// view returns what the cache holds of the owner's Deployments.
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

// carryOut does what is decided about the view.
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
		// Whose it is shows when the cache has it.
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

// patch corrects the fields of live that decision says.
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

// notWritten returns what an error in writing a Deployment says.
func notWritten(o Owner, doing string, d *appsv1.Deployment, err error) (State, error) {
	if isLate(err, d) {
		if apierrors.IsNotFound(err) {
			err = stale(d.Name, err)
		}
		return State{Refused: d}, err
	}
	return State{}, fmt.Errorf("%s Deployment %q of %s: %w", doing, d.Name, o, err)
}

// get returns the Deployment as the API server has it, nil if there is none. To list
// one is to get it, by a verb that is granted anyway.
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

// stale turns an error that shows the cache to be late into a conflict.
func stale(name string, err error) error {
	return apierrors.NewConflict(deploymentResource, name, err)
}
