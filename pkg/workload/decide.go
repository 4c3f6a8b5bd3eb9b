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

// View is the input of a decision. It is read-only.
type View struct {
	// Live is the Deployment named in the spec, nil if there is none.
	Live *appsv1.Deployment
	// Former are the Deployments that the owner still owns under former names, the newest
	// first.
	Former []*appsv1.Deployment
	// Hold are the fields that must not be corrected now.
	Hold Fields
}

// own returns the live Deployment, or nil if the owner does not own it.
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

// Decision is what to do about an owner's Deployment: at most one write, and the reason why
// the rest cannot be done. The zero Decision means that nothing needs to be done.
type Decision struct {
	// Create is the Deployment to create.
	Create *appsv1.Deployment
	// Patch is a strategic merge patch of the Patched fields. It carries the
	// resourceVersion of the Deployment that it is for.
	Patch   []byte
	Patched Fields
	// Delete is the former Deployment to delete.
	Delete *appsv1.Deployment
	// Blocker is why not everything can be done now.
	Blocker *Blocker
}

// write returns the write that the decision needs.
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

// Blocker is the reason why an owner's Deployment is not as declared.
type Blocker struct {
	// Reason is a condition reason of the API. It also decides whether user action is
	// needed: see [ConditionFor].
	Reason string
	// Message says what is wrong and how to fix it.
	Message string
	// Quotes is set if the message may quote contents of the object.
	Quotes bool
}

// Decide decides what to do for the owner. It does not modify its arguments.
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

// missingContainer returns a blocker if the owner declares an image and the Deployment
// lacks the container for it. A patch of the image would add a second container next to one
// that somebody renamed.
func (o Owner) missingContainer(d *appsv1.Deployment) *Blocker {
	if o.Image == "" || imageOf(d) != "" {
		return nil
	}
	return &Blocker{
		Reason: workloadv1alpha1.ReasonContainerMissing,
		Message: fmt.Sprintf("Deployment %q has no container %q, which spec.image of %s applies to: rename one of its containers, remove spec.image, or delete the Deployment so that it is created again",
			d.Name, containerName, o),
	}
}

// terminating reports the finalizers that hold an owner in deletion, and the state of its
// Deployment, which the garbage collector deletes. own is nil if there is none.
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

// blockedBy returns why the owner must not write live, or nil if it may.
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
		// Only one object can have this name, and that is the owner.
		return &Blocker{
			Reason:  workloadv1alpha1.ReasonWaitingForDeletion,
			Message: fmt.Sprintf("Deployment %q belongs to an earlier %s, since deleted; it will be created again once that one is gone", live.Name, o),
		}
	}
	return &Blocker{Reason: workloadv1alpha1.ReasonDeploymentConflict, Message: o.conflict(live, owner)}
}

// conflict names the owner of the Deployment and says how to resolve the conflict.
func (o Owner) conflict(live *appsv1.Deployment, owner *metav1.OwnerReference) string {
	if owner != nil {
		return fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s", live.Name, owner.Kind, owner.Name, o)
	}
	if live.Spec.Selector == nil || !maps.Equal(live.Spec.Selector.MatchLabels, o.labels()) {
		return fmt.Sprintf("Deployment %q exists and is not owned by %s: set another spec.deploymentName, or delete the Deployment so that it is created again",
			live.Name, o)
	}
	// The Deployment was created for the owner, and its owner reference was removed by hand
	// or by an orphaning deletion. The suggested patch is strategic, so it keeps other
	// owners.
	reference, err := json.Marshal(metav1.NewControllerRef(o, o.Kind))
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	return fmt.Sprintf("Deployment %q was created for the %s of this name but has no controller owner: delete it so that it is created again, or make this %s its owner: "+
		`kubectl -n %s patch deployment %s -p '{"metadata":{"ownerReferences":[%s]}}'`,
		live.Name, o.Kind.Kind, o.Kind.Kind, live.Namespace, live.Name, reference)
}

func groupOf(owner *metav1.OwnerReference) string {
	gv, _ := schema.ParseGroupVersion(owner.APIVersion) // empty if it is malformed
	return gv.Group
}

// patch returns the patch that sets the given fields of live to the declared values.
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
