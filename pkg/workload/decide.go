// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// Decision is what to do about a parent's Deployment: at most one of the fields
// is set. With none there is nothing to do.
type Decision struct {
	// Create is the Deployment to create.
	Create *appsv1.Deployment
	// Patch is the strategic merge patch to apply to the Deployment that was seen.
	Patch []byte
	// Obstacle is why nothing can be done now.
	Obstacle *Obstacle
}

// Obstacle is what keeps a parent from having its Deployment.
type Obstacle struct {
	// Reason is one of the reasons of the API.
	Reason string
	// Message says what is in the way and what to do about it.
	Message string
	// Passes says that it goes by itself; otherwise somebody must mend it.
	Passes bool
}

// Decide decides what to do for the parent about live, the Deployment of the
// wanted name, nil if there is none. It changes neither.
func Decide(p Parent, live *appsv1.Deployment) Decision {
	if problem := p.invalid(); problem != "" {
		return Decision{Obstacle: &Obstacle{Reason: workloadv1alpha1.ReasonInvalidSpec, Message: problem}}
	}
	if live == nil {
		return Decision{Create: p.newDeployment()}
	}
	if obstacle := p.obstructedBy(live); obstacle != nil {
		return Decision{Obstacle: obstacle}
	}
	return Decision{Patch: p.patch(live)}
}

// obstructedBy says why live is not for the parent to write, or nil if it is.
func (p Parent) obstructedBy(live *appsv1.Deployment) *Obstacle {
	if live.DeletionTimestamp != nil {
		return &Obstacle{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("Deployment %q is being deleted; it is created anew once it is gone", live.Name),
			Passes:  true,
		}
	}
	if p.Owns(live) {
		return nil
	}
	owner := metav1.GetControllerOf(live)
	switch {
	case owner == nil:
		return &Obstacle{
			Reason: workloadv1alpha1.ReasonDeploymentConflict,
			Message: fmt.Sprintf("Deployment %q exists and is not owned by %s: set another spec.deploymentName, or delete the Deployment to have it created anew",
				live.Name, p),
		}
	case owner.Name == p.GetName() && owner.Kind == p.Kind.Kind && groupOf(owner) == p.Kind.Group:
		// Of this name there is one object at a time, and it is the parent.
		return &Obstacle{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("Deployment %q belongs to an earlier %s, since deleted; it is created anew once it is gone", live.Name, p),
			Passes:  true,
		}
	default:
		return &Obstacle{
			Reason: workloadv1alpha1.ReasonDeploymentConflict,
			Message: fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s",
				live.Name, owner.Kind, owner.Name, p),
		}
	}
}

func groupOf(owner *metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// patch returns the strategic merge patch that brings what the parent declares
// back, or nil if live has it.
func (p Parent) patch(live *appsv1.Deployment) []byte {
	spec := map[string]any{}
	if p.Replicas != nil && *p.Replicas != replicasOf(live) {
		spec["replicas"] = *p.Replicas
	}
	if p.Image != "" && p.Image != imageOf(live) {
		containers := []map[string]any{{"name": containerName, "image": p.Image}}
		spec["template"] = map[string]any{"spec": map[string]any{"containers": containers}}
	}
	if len(spec) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion},
		"spec":     spec,
	})
	if err != nil {
		panic(err) // strings and numbers in maps always marshal
	}
	return patch
}

// replicasOf returns how many replicas the Deployment asks for.
func replicasOf(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1 // the API's default
	}
	return *deployment.Spec.Replicas
}

// imageOf returns the image of the container that is the parent's.
func imageOf(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == containerName {
			return container.Image
		}
	}
	return ""
}
