// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/tolerant"
)

// KindExplainer is implemented by a [Kind] whose status has more than the Deployment's
// state.
type KindExplainer[T Object] interface {
	// Facts returns the additional parts of the object's status.
	Facts(T) ([]controller.Fact, error)
}

// Explain implements controller.Explainer.
func (c *Controller[T]) Explain(key cache.ObjectName) (controller.Explanation, error) {
	kind := c.kind.GroupVersionKind().Kind
	obj, exists, err := c.cached(key)
	if err != nil {
		return controller.Explanation{}, err
	}
	if !exists {
		return controller.Explanation{Next: fmt.Sprintf("nothing: the cache has no %s %q in namespace %q", kind, key.Name, key.Namespace)}, nil
	}
	if err := tolerant.DecodeError(obj); err != nil {
		// The error may quote contents of the object.
		return controller.Explanation{Found: true, Next: "nothing: the object cannot be decoded; see its Event for the error"}, nil
	}
	owner := c.kind.Owner(obj)
	view, err := c.reconciler.view(owner)
	if err != nil {
		return controller.Explanation{}, fmt.Errorf("reading Deployments of %s: %w", owner, err)
	}
	next, state := c.reconciler.foresee(owner, view)
	status, err := c.statusFacts(obj, owner, state)
	if err != nil {
		return controller.Explanation{}, err
	}
	if next == nothing && slices.ContainsFunc(status, func(f controller.Fact) bool { return f.Differs }) {
		next = "write the status"
		if c.pace.Pending(key) {
			next += fmt.Sprintf(", at most %v after the change that it reports", statusDelay)
		}
	}
	if late := c.consistency.Stale(key); late != "" {
		next = late + "; then: " + next
	}
	return controller.Explanation{Found: true, Facts: slices.Concat(owner.facts(view), status), Next: next}, nil
}

// statusFacts returns the desired and the actual status of the owner. Without a state the
// desired status depends on the result of a write, so it is left out.
func (c *Controller[T]) statusFacts(obj T, owner Owner, state *State) (facts []controller.Fact, err error) {
	if explainer, ok := c.kind.(KindExplainer[T]); ok {
		if facts, err = explainer.Facts(obj); err != nil {
			return nil, err
		}
	}
	if state == nil {
		return facts, nil
	}
	actual := c.kind.Status(obj)
	wanted := NewStatus(owner, *state, actual, metav1.NewTime(c.clock.Now()))
	fact := controller.NewFact("status", wanted.summary(), actual.summary())
	fact.Differs = !wanted.Equal(actual)
	return append(facts, fact), nil
}

// nothing is the next step for an owner whose Deployment and status are as declared.
const nothing = "nothing: everything is as declared"

// facts returns the desired and the actual fields of the owner's Deployments.
func (o Owner) facts(view View) []controller.Fact {
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
			replicas.Actual, replicas.Differs = fmt.Sprint(replicasOf(own)), o.differs(own, Replicas)
			image.Actual, image.Differs = imageOf(own), o.differs(own, Image)
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

// foresee returns the next write for the owner, or why there is none. It also returns the
// state that the status depends on, nil if that is only known after the write.
func (k *Reconciler) foresee(o Owner, view View) (next string, state *State) {
	p := k.plan(o, view)
	switch {
	case p.next.verb != "":
		return fmt.Sprintf("%s Deployment %q", p.next.verb, p.next.deployment.Name), nil
	case len(p.failing) > 0:
		why := p.blocker.Message
		if p.blocker.Quotes {
			why = "see its condition"
		}
		w := p.failing[0]
		return fmt.Sprintf("%s Deployment %q in %v: it failed: %s", w.verb, w.deployment.Name, p.state.Again.Round(time.Millisecond), why), &p.state
	case p.state.Blocker == nil:
		return nothing, &p.state
	case p.decision.Blocker != nil || p.state.Again == 0:
		return fmt.Sprintf("nothing: %s: %s", p.state.Blocker.Reason, p.state.Blocker.Message), &p.state
	default:
		return fmt.Sprintf("nothing for %v: %s", p.state.Again.Round(time.Millisecond), p.state.Blocker.Message), &p.state
	}
}

// summary returns the status in one line: the condition that is True, and the counts.
func (s Status) summary() string {
	if len(s.Conditions) == 0 {
		return ""
	}
	verdict := "no condition is True"
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			verdict = c.Type + ", " + c.Reason
		}
	}
	return fmt.Sprintf("%s, %d of %d available, generation %d", verdict, s.AvailableReplicas, s.Replicas, s.ObservedGeneration)
}
