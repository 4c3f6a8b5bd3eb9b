// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	"samplecontroller.io/controller-manager/controller"
)

// explain compares the declared with the actual state of an object, and says what is next.
func (w *Workload[T]) explain(r *controller.Request[T]) controller.Explanation {
	obj, _ := r.Object()
	o, actual := w.adapter.Owner(obj), *w.adapter.Status(obj)
	view := w.view(r, o)
	decision, state := w.decide(o, view)
	state.Blocker = w.blocker(r, state.Deployment, decision)
	facts, next := o.facts(view), decision.next(state)
	if w.extra != nil {
		facts = append(facts, w.extra.Facts(r, obj)...)
	}
	status := controller.Fact{Name: "status", Wanted: "(after the write)", Actual: summary(actual)}
	if !decision.writes() {
		wanted := NewStatus(o, state, actual, metav1.Now())
		status.Wanted, status.Differs = summary(wanted), !equality.Semantic.DeepEqual(wanted, actual)
	}
	facts = append(facts, status)
	if next == nothing && slices.ContainsFunc(facts, func(f controller.Fact) bool { return f.Differs }) {
		next = "write the status"
	}
	return controller.Explanation{Facts: facts, Next: next}
}

// nothing is the next step for an owner whose Deployment and status are as declared.
const nothing = "nothing: everything is as declared"

// facts returns the desired and the actual fields of the owner's Deployments.
func (o Owner) facts(view view) []controller.Fact {
	var facts []controller.Fact
	own := view.own(o)
	if view.Live == nil {
		facts = append(facts, controller.NewFact("Deployment", o.DeploymentName, ""))
	} else {
		there := view.Live.Name
		if view.Live.DeletionTimestamp != nil {
			there += ", being deleted"
		}
		wanted, actual := o.owners(view.Live)
		facts = append(facts, controller.NewFact("Deployment", o.DeploymentName, there), controller.NewFact("its owner", wanted, actual))
	}
	if own != nil || view.Live == nil { // those of another owner's Deployment do not matter
		replicas := controller.Fact{Name: "its replicas", Wanted: leftToOthers}
		image := controller.Fact{Name: "its image", Wanted: cmp.Or(o.Image, leftToOthers)}
		if o.Replicas != nil {
			replicas.Wanted = fmt.Sprint(*o.Replicas)
		}
		if own != nil {
			replicas.Actual, replicas.Differs = fmt.Sprint(replicasOf(own)), o.differs(own, fieldReplicas)
			image.Actual, image.Differs = imageOf(own), o.differs(own, fieldImage)
		}
		facts = append(facts, replicas, image)
	}
	for _, former := range view.Former {
		facts = append(facts, controller.Fact{Name: "former Deployment", Wanted: leftToOthers, Actual: former.Name})
	}
	return facts
}

// leftToOthers stands for the value of a field that the owner does not declare.
const leftToOthers = "(left to others)"

// owners returns the desired and the actual owner of the Deployment. They include UIDs if
// kind and name are the same.
func (o Owner) owners(live *appsv1.Deployment) (wanted, actual string) {
	wanted = o.String()
	owner := metav1.GetControllerOf(live)
	if owner == nil {
		return wanted, ""
	}
	actual = fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	if actual == wanted && owner.UID != o.GetUID() {
		wanted, actual = fmt.Sprintf("%s, UID %s", wanted, o.GetUID()), fmt.Sprintf("%s, UID %s", actual, owner.UID)
	}
	return wanted, actual
}

// writes reports whether the decision is to write something.
func (d decision) writes() bool { return d.Create != nil || d.Correct != nil }

// next returns the next write, or why there is none. state is that without one.
func (d decision) next(state State) string {
	switch {
	case d.Create != nil:
		return fmt.Sprintf("create Deployment %q", d.Create.Name)
	case d.Correct != nil:
		return fmt.Sprintf("patch Deployment %q", d.Correct.Name)
	case state.Blocker == nil:
		return nothing
	default:
		return fmt.Sprintf("nothing: %s: %s", state.Blocker.Reason, state.Blocker.Message)
	}
}

// summary returns the status in one line: the conditions that are True, and the counts. A paused object has two.
func summary(s workloadv1alpha1.Status) string {
	if len(s.Conditions) == 0 {
		return ""
	}
	var verdicts []string
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			verdicts = append(verdicts, c.Type+", "+c.Reason)
		}
	}
	verdict := cmp.Or(strings.Join(verdicts, "; "), "no condition is True")
	return fmt.Sprintf("%s, %d of %d available, generation %d", verdict, s.AvailableReplicas, s.Replicas, s.ObservedGeneration)
}
