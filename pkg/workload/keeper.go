// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	appsv1listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/klog/v2"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Keeper keeps the Deployments of the parents of one controller. It holds no
// state and may be used by several goroutines, each for another parent.
type Keeper struct {
	deployments  appsv1listers.DeploymentLister
	client       appsv1client.DeploymentsGetter
	fieldManager string
}

// NewKeeper returns a keeper that reads from the lister and writes with the
// client under the name of fieldManager.
func NewKeeper(deployments appsv1listers.DeploymentLister, client appsv1client.DeploymentsGetter, fieldManager string) *Keeper {
	return &Keeper{deployments: deployments, client: client, fieldManager: fieldManager}
}

// State is what became of a parent's Deployment.
type State struct {
	// Deployment is the parent's own as last seen, after a write as the API server
	// returned it; nil if there is none. It is read-only.
	Deployment *appsv1.Deployment
	// Written says that Deployment was written just now, so that the cache may not
	// have it yet.
	Written bool
	// Obstacle is why the Deployment is not there or not as declared; nil if
	// nothing is in the way.
	Obstacle *Obstacle
}

// Keep brings the Deployment of the parent to where it should be, with one write
// if something differs and none if nothing does.
//
// If the API server denies the write on its merits, the State says so and the
// error asks for another try. With any other error the State says nothing. An
// error for which [apierrors.IsConflict] holds means that the cache was late.
func (k *Keeper) Keep(ctx context.Context, p Parent) (State, error) {
	live, err := k.deployments.Deployments(p.GetNamespace()).Get(p.DeploymentName)
	if apierrors.IsNotFound(err) {
		live = nil
	} else if err != nil {
		return State{}, fmt.Errorf("reading Deployment of %s: %w", p, err)
	}

	decision := Decide(p, live)
	switch {
	case decision.Create != nil:
		return k.create(ctx, p, decision.Create)
	case decision.Patch != nil:
		return k.patch(ctx, p, live, decision.Patch)
	case live != nil && !p.Owns(live):
		return State{Obstacle: decision.Obstacle}, nil
	default:
		return State{Deployment: live, Obstacle: decision.Obstacle}, nil
	}
}

func (k *Keeper) create(ctx context.Context, p Parent, deployment *appsv1.Deployment) (State, error) {
	created, err := k.client.Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{FieldManager: k.fieldManager})
	if apierrors.IsAlreadyExists(err) {
		// Whose it is shows when the cache has it.
		return State{}, stale(deployment.Name, err)
	}
	if err != nil {
		return denied(nil, fmt.Errorf("creating Deployment %q of %s: %w", deployment.Name, p, err))
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return State{Deployment: created, Written: true}, nil
}

func (k *Keeper) patch(ctx context.Context, p Parent, live *appsv1.Deployment, patch []byte) (State, error) {
	patched, err := k.client.Deployments(live.Namespace).Patch(ctx, live.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: k.fieldManager})
	if apierrors.IsNotFound(err) {
		return State{}, stale(live.Name, err)
	}
	if err != nil {
		return denied(live, fmt.Errorf("patching Deployment %q of %s: %w", live.Name, p, err))
	}
	klog.FromContext(ctx).V(2).Info("Patched Deployment", "deployment", klog.KObj(patched), "patch", string(patch))
	return State{Deployment: patched, Written: true}, nil
}

// stale turns an error that shows the cache to be late into a conflict.
func stale(name string, err error) error {
	return apierrors.NewConflict(appsv1.Resource("deployments"), name, err)
}

// denied tells a write that the API server denies on its merits, for a quota, an
// admission policy or a missing permission, from one that failed.
func denied(live *appsv1.Deployment, err error) (State, error) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return State{}, err
	}
	switch code := status.Status().Code; code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity:
		return State{Deployment: live, Obstacle: &Obstacle{
			Reason:  workloadv1alpha1.ReasonWriteDenied,
			Message: status.Status().Message,
		}}, err
	default:
		return State{}, err
	}
}
