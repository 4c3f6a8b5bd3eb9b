// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// View is what a decision is made on. It is read-only.
type View struct {
	// Live is the Deployment of the wanted name, nil if there is none.
	Live *appsv1.Deployment
	// Former are the Deployments that the owner owns under other names, from
	// before it was given the present one, the newest first.
	Former []*appsv1.Deployment
	// Hold are the fields that are not to be corrected now.
	Hold Fields
}

// own returns the live Deployment if it is the owner's, else nil.
func (v View) own(o Owner) *appsv1.Deployment {
	if v.Live != nil && !o.Owns(v.Live) {
		return nil
	}
	return v.Live
}

// differ returns the fields of the live Deployment to correct now.
func (v View) differ(o Owner) (fields Fields) {
	for f := range fieldCount {
		fields[f] = o.differs(v.Live, f) && !v.Hold[f]
	}
	return fields
}

// former returns the newest of the former Deployments, nil if there is none.
func (v View) former() *appsv1.Deployment {
	if len(v.Former) == 0 {
		return nil
	}
	return v.Former[0]
}

// Decision is what to do about an owner's Deployment: at most one write, and what keeps
// the rest from being done. With neither there is nothing to do.
type Decision struct {
	// Create is the Deployment to create.
	Create *appsv1.Deployment
	// Patch is a strategic merge patch of the Patched fields of the Deployment, with the
	// resourceVersion that it is for.
	Patch   []byte
	Patched Fields
	// Delete is the former Deployment to delete.
	Delete *appsv1.Deployment
	// Blocker is why not all can be done now.
	Blocker *Blocker
}

// write returns what the decision about the owner asks of the API server.
func (d Decision) write(o Owner) write {
	switch {
	case d.Create != nil:
		return write{"create", d.Create.Name}
	case d.Patch != nil:
		return write{"patch", o.DeploymentName}
	case d.Delete != nil:
		return write{"delete", d.Delete.Name}
	default:
		return write{}
	}
}

// Blocker is what keeps an owner from having its Deployment as it declares it.
type Blocker struct {
	// Reason is one of the reasons of the API. It says whether somebody must do something:
	// see [ConditionFor].
	Reason string
	// Message says what is in the way and what to do about it.
	Message string
	// Quotes says that the message may quote what the object holds.
	Quotes bool
}

// Decide decides what to do for the owner. It changes nothing that it is given.
func Decide(o Owner, view View) Decision {
	if o.GetDeletionTimestamp() != nil {
		return Decision{Blocker: o.terminating(view.own(o))}
	}
	if problem := o.invalid(); problem != "" {
		return Decision{Blocker: &Blocker{Reason: workloadv1alpha1.ReasonInvalidSpec, Message: problem}}
	}
	if view.Live == nil {
		return o.create(view.former())
	}
	if blocker := o.blockedBy(view.Live); blocker != nil {
		return Decision{Blocker: blocker}
	}
	blocker := o.missingContainer(view.Live)
	differ := view.differ(o)
	differ[Image] = differ[Image] && blocker == nil
	switch {
	case differ.any():
		return Decision{Patch: o.patch(view.Live, differ), Patched: differ, Blocker: blocker}
	case blocker != nil:
		return Decision{Blocker: blocker}
	}
	return Decision{Delete: o.obsolete(view)}
}

// missingContainer says that the Deployment has no container for the image that the owner
// declares, nil if it has one or needs none. A patch of the image would add a second
// container beside one that somebody renamed.
func (o Owner) missingContainer(d *appsv1.Deployment) *Blocker {
	if o.Image == "" || imageOf(d) != "" {
		return nil
	}
	return &Blocker{
		Reason: workloadv1alpha1.ReasonContainerMissing,
		Message: fmt.Sprintf("Deployment %q has no container %q for spec.image of %s: give one of its containers this name, leave spec.image out, or delete the Deployment to have it created again",
			d.Name, containerName, o),
	}
}

// terminating reports the finalizers that hold an owner in deletion, and its Deployment,
// which the garbage collector deletes. own is nil if there is none.
func (o Owner) terminating(own *appsv1.Deployment) *Blocker {
	left := "it has no Deployment"
	if own != nil {
		left = judgeDeployment(o, State{Deployment: own}).message
	}
	if own != nil && own.DeletionTimestamp != nil {
		left += ", and is being deleted"
	}
	return &Blocker{
		Reason:  workloadv1alpha1.ReasonTerminating,
		Message: fmt.Sprintf("%s is being deleted, held by finalizers %q; %s", o, o.GetFinalizers(), left),
	}
}

// blockedBy says why live is not for the owner to write, or nil if it is.
func (o Owner) blockedBy(live *appsv1.Deployment) *Blocker {
	if live.DeletionTimestamp != nil {
		return &Blocker{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("Deployment %q is being deleted; it will be created again once that one is gone", live.Name),
		}
	}
	if o.Owns(live) {
		return nil
	}
	owner := metav1.GetControllerOf(live)
	if owner != nil && owner.Name == o.GetName() && owner.Kind == o.Kind.Kind && groupOf(owner) == o.Kind.Group {
		// Of this name there is one object at a time, and it is the owner.
		return &Blocker{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("Deployment %q belongs to an earlier %s, since deleted; it will be created again once that one is gone", live.Name, o),
		}
	}
	return &Blocker{Reason: workloadv1alpha1.ReasonDeploymentConflict, Message: o.conflict(live, owner)}
}

// conflict says whose the Deployment is and what to do about it.
func (o Owner) conflict(live *appsv1.Deployment, owner *metav1.OwnerReference) string {
	if owner != nil {
		return fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s", live.Name, owner.Kind, owner.Name, o)
	}
	if live.Spec.Selector == nil || !maps.Equal(live.Spec.Selector.MatchLabels, o.labels()) {
		return fmt.Sprintf("Deployment %q exists and is not owned by %s: set another spec.deploymentName, or delete the Deployment so that it is created again",
			live.Name, o)
	}
	// It was made for the owner and its owner reference taken away, by hand or by
	// an orphaning deletion. The patch is a strategic one: other owners stay.
	reference, err := json.Marshal(metav1.NewControllerRef(o, o.Kind))
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	return fmt.Sprintf("Deployment %q was made for the %s of this name but is owned by nobody: delete it so that it is created again, or give it to this one: "+
		`kubectl -n %s patch deployment %s -p '{"metadata":{"ownerReferences":[%s]}}'`,
		live.Name, o.Kind.Kind, live.Namespace, live.Name, reference)
}

func groupOf(owner *metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// patch returns what brings back the fields of live.
func (o Owner) patch(live *appsv1.Deployment, fields Fields) []byte {
	spec := map[string]any{}
	if fields[Replicas] {
		spec["replicas"] = *o.Replicas
	}
	if fields[Image] {
		containers := []map[string]any{{"name": containerName, "image": o.Image}}
		spec["template"] = map[string]any{"spec": map[string]any{"containers": containers}}
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
