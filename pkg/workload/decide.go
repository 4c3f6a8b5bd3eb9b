// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
)

// view is the input of a decision. It is read-only.
type view struct {
	// Live is the Deployment named in the spec, nil if there is none.
	Live *appsv1.Deployment
	// Former are the Deployments that the owner got under former names: see [Owner.Reported].
	Former []*appsv1.Deployment
	// Now is the time of the decision.
	Now time.Time
}

// own returns the live Deployment, or nil if the owner does not own it.
func (v view) own(o Owner) *appsv1.Deployment {
	if v.Live != nil && !o.Owns(v.Live) {
		return nil
	}
	return v.Live
}

// reported returns the Deployment that the status describes and whose declared fields are kept:
// see [Owner.Reported].
func (v view) reported(o Owner) *appsv1.Deployment {
	if own := v.own(o); own != nil {
		return own
	}
	return first(v.Former)
}

// decision is what to do about an owner's Deployments, and the reason why the rest cannot be
// done. The zero decision means that nothing needs to be done.
type decision struct {
	// Create is the Deployment to create.
	Create *appsv1.Deployment
	// Recreates is whether the status describes a deleted Deployment of that name.
	Recreates bool
	// Correct is the Deployment with the Differing fields. While the one to Create is missing, it
	// is a former one.
	Correct   *appsv1.Deployment
	Differing fieldSet
	// Blocker is why not everything can be done now.
	Blocker *blocker
	// Again is the delay after which the decision changes by itself. 0 means never.
	Again time.Duration
}

// blocker is the reason why an owner's Deployment is not as declared.
type blocker struct {
	// Reason is a condition reason of the API. It also decides whether user action is
	// needed: see [ConditionFor].
	Reason string
	// Message says what is wrong and how to fix it.
	Message string
}

// decide decides what to do for the owner. It does not modify its arguments.
func decide(o Owner, view view) decision {
	if o.GetDeletionTimestamp() != nil {
		return decision{Blocker: o.terminating(view.reported(o))}
	}
	if problem := o.invalid(); problem != "" {
		return decision{Blocker: &blocker{Reason: workloadv1alpha1.ReasonInvalidSpec, Message: problem}}
	}
	var decision decision
	if view.Live == nil {
		decision.Create = o.newDeployment()
		// After a change of the name, the status describes the former Deployment, or is of an earlier generation.
		decision.Recreates = o.HadDeployment && o.ObservedGeneration == o.GetGeneration() && len(view.Former) == 0
	} else {
		decision.Blocker, decision.Again = o.blockedBy(view.Live, view.Now)
	}
	if present := view.reported(o); present != nil && present.DeletionTimestamp == nil {
		o.correct(&decision, present)
	}
	return decision
}

// correct adds the corrections of the Deployment to the decision.
func (o Owner) correct(decision *decision, d *appsv1.Deployment) {
	missing := o.missingContainer(d)
	for f := range fieldCount {
		decision.Differing[f] = o.differs(d, f) && (f != fieldImage || missing == nil)
	}
	if decision.Differing.any() {
		decision.Correct = d
	}
	if decision.Blocker == nil && decision.Create == nil {
		decision.Blocker = missing
	}
}

// missingContainer returns a blocker if the owner declares an image and the Deployment
// lacks the container for it. A patch of the image would add a second container next to one
// that somebody renamed.
func (o Owner) missingContainer(d *appsv1.Deployment) *blocker {
	if o.Image == "" || imageOf(d) != "" {
		return nil
	}
	return &blocker{
		Reason: workloadv1alpha1.ReasonContainerMissing,
		Message: fmt.Sprintf("Deployment %q has no container %q, which spec.image of %s applies to: "+
			"rename one of its containers, remove spec.image, or delete the Deployment so that it is created again",
			d.Name, containerName, o),
	}
}

// terminating reports the finalizers that hold an owner in deletion, and the state of its
// Deployment, which the garbage collector deletes. reported is nil if there is none.
func (o Owner) terminating(reported *appsv1.Deployment) *blocker {
	left := "it has no Deployment"
	if reported != nil {
		left = judgeDeployment(o, State{Deployment: reported}, nil, time.Time{}).message
	}
	if reported != nil && reported.DeletionTimestamp != nil {
		left += ", and is being deleted"
	}
	return &blocker{
		Reason:  workloadv1alpha1.ReasonTerminating,
		Message: fmt.Sprintf("%s is being deleted, held by finalizers %q; %s", o, o.GetFinalizers(), left),
	}
}

// deletionGrace is how long the deletion of a Deployment may take before the status says what holds
// it. The garbage collector takes seconds.
const deletionGrace = time.Minute

// blockedBy returns why the owner must not write live, or nil if it may. again is the delay
// after which the answer changes by itself, 0 for never.
func (o Owner) blockedBy(live *appsv1.Deployment, now time.Time) (why *blocker, again time.Duration) {
	if live.DeletionTimestamp != nil {
		return o.waiting(live.DeletionTimestamp.Time, now,
			fmt.Sprintf("Deployment %q is being deleted; it will be created again once that one is gone", live.Name), heldBy(live))
	}
	if o.Owns(live) {
		return nil, 0
	}
	if o.earlierOwner(live) {
		return o.waiting(o.GetCreationTimestamp().Time, now,
			fmt.Sprintf("Deployment %q belongs to an earlier %s, since deleted; it will be created again once that one is gone", live.Name, o),
			fmt.Sprintf("the garbage collector has not deleted it: run kubectl -n %s delete deployment %s", live.Namespace, live.Name))
	}
	return &blocker{Reason: workloadv1alpha1.ReasonDeploymentConflict, Message: o.conflict(live)}, 0
}

// waiting returns the blocker for a Deployment that should soon be gone. After the grace period
// since the given time it says what holds the Deployment, unless that is "".
func (o Owner) waiting(since, now time.Time, message, holder string) (*blocker, time.Duration) {
	if holder == "" {
		return &blocker{Reason: workloadv1alpha1.ReasonWaitingForDeletion, Message: message}, 0
	}
	if left := deletionGrace - now.Sub(since); left > 0 {
		return &blocker{Reason: workloadv1alpha1.ReasonWaitingForDeletion, Message: message}, left
	}
	return &blocker{Reason: workloadv1alpha1.ReasonDeletionBlocked, Message: message + "; " + holder}, 0
}

// heldBy says which finalizers hold a Deployment in deletion and how to remove them. It returns ""
// if there are none but that of the garbage collector, which waits for the Pods.
func heldBy(d *appsv1.Deployment) string {
	finalizers := slices.DeleteFunc(slices.Clone(d.Finalizers),
		func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	if len(finalizers) == 0 {
		return ""
	}
	return fmt.Sprintf("finalizers %q hold it: wait for their controllers or, if those are gone, run kubectl -n %s patch deployment %s --type=json "+
		`-p '[{"op":"remove","path":"/metadata/finalizers"}]'`, finalizers, d.Namespace, d.Name)
}

// conflict names the owner of the Deployment and says how to resolve the conflict.
func (o Owner) conflict(live *appsv1.Deployment) string {
	if owner := metav1.GetControllerOf(live); owner != nil {
		message := fmt.Sprintf("Deployment %q is owned by %s %q: set another spec.deploymentName for %s", live.Name, owner.Kind, owner.Name, o)
		if owner.Kind == o.Kind.Kind && groupOf(owner) == o.Kind.Group {
			message += fmt.Sprintf(". If that %s names another Deployment now, you may instead delete this one, with its Pods: kubectl -n %s delete deployment %s",
				owner.Kind, live.Namespace, live.Name)
		}
		return message
	}
	was := fmt.Sprintf("exists and is not owned by %s", o)
	if o.made(live) {
		// Its owner reference was removed by hand or by an orphaning deletion.
		was = fmt.Sprintf("was created for the %s of this name but has no controller owner", o.Kind.Kind)
	}
	// The suggested patch is strategic, so it keeps other owners.
	reference, err := json.Marshal(metav1.NewControllerRef(o, o.Kind))
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	return fmt.Sprintf("Deployment %q %s: set another spec.deploymentName, or make this %s its owner, which then keeps its replicas and image as declared: "+
		`kubectl -n %s patch deployment %s -p '{"metadata":{"ownerReferences":[%s]}}'`,
		live.Name, was, o.Kind.Kind, live.Namespace, live.Name, reference)
}

func groupOf(owner *metav1.OwnerReference) string {
	gv, _ := schema.ParseGroupVersion(owner.APIVersion) // empty if it is malformed
	return gv.Group
}
