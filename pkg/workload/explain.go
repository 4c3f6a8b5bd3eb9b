// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/lenient"
)

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
	if err := lenient.DecodeError(obj); err != nil {
		return controller.Explanation{Found: true, Next: fmt.Sprintf("nothing, because what it wants is not known: it cannot be decoded: %v", err)}, nil
	}
	if obj.GetDeletionTimestamp() != nil {
		return controller.Explanation{Found: true, Next: fmt.Sprintf("nothing: the %s is being deleted, and its Deployment goes by garbage collection", kind)}, nil
	}
	parent := c.kind.Parent(obj)
	view, err := c.keeper.view(parent)
	if err != nil {
		return controller.Explanation{}, fmt.Errorf("reading Deployments of %s: %w", parent, err)
	}
	facts := parent.facts(view)
	next, state := c.keeper.foresee(parent, view)
	if state != nil {
		wanted, actual := NewStatus(parent, *state, c.kind.Status(obj).Conditions, metav1.NewTime(c.clock.Now())), c.kind.Status(obj)
		fact := controller.NewFact("status", wanted.summary(), actual.summary())
		fact.Differs = !equality.Semantic.DeepEqual(wanted, actual)
		facts = append(facts, fact)
		if fact.Differs && next == nothing {
			next = "write the status"
		}
	}
	if c.written.Late(key) {
		next = "nothing until the cache has seen what was last written for it, or 30s have passed; then: " + next
	}
	return controller.Explanation{Found: true, Facts: facts, Next: next}, nil
}

// nothing is what is next for a parent that has what it wants.
const nothing = "nothing: all is as it is wanted"

// facts returns what the parent wants and what the view shows.
func (p Parent) facts(view View) []controller.Fact {
	live := view.Live
	if live == nil {
		live = &appsv1.Deployment{}
	}
	owner := ""
	if ref := metav1.GetControllerOf(live); ref != nil {
		owner = fmt.Sprintf("%s %q, UID %s", ref.Kind, ref.Name, ref.UID)
	}
	replicas, present := "", ""
	if p.Replicas != nil {
		replicas = fmt.Sprint(*p.Replicas)
	}
	if view.Live != nil {
		present = fmt.Sprint(replicasOf(live))
	}
	facts := []controller.Fact{
		controller.NewFact("Deployment", p.DeploymentName, live.Name),
		{Name: "its owner", Wanted: fmt.Sprintf("%s, UID %s", p, p.GetUID()), Actual: owner, Differs: view.Live != nil && !p.Owns(live)},
		{Name: "its replicas", Wanted: orWhatever(replicas), Actual: present, Differs: view.Live != nil && p.replicasDiffer(live)},
		{Name: "its image", Wanted: orWhatever(p.Image), Actual: imageOf(live), Differs: view.Live != nil && p.Image != "" && p.Image != imageOf(live)},
	}
	for _, former := range view.Former {
		facts = append(facts, controller.Fact{Name: "former Deployment", Wanted: "none", Actual: former.Name, Differs: true})
	}
	return facts
}

// orWhatever says what is wanted of a field that the parent may leave to others.
func orWhatever(wanted string) string {
	if wanted == "" {
		return "(left to others)"
	}
	return wanted
}

// foresee says what would be written for the parent now, or why nothing would, and the
// state to judge its status by, nil if that depends on what comes of a write.
func (k *Keeper) foresee(p Parent, view View) (next string, state *State) {
	now := k.clock.Now()
	hold, contest, again := k.contests.of(p, now)
	view.HoldReplicas = hold
	decision := Decide(p, view)
	write := decision.write(p)
	if obstacle, wait := k.denials.of(p, write, now); obstacle != nil {
		return fmt.Sprintf("%s Deployment %q in %v: it was denied: %s", write.verb, write.deployment, wait.Round(time.Millisecond), obstacle.Message),
			&State{Deployment: view.Live, Obstacle: obstacle}
	}
	switch {
	case decision.Obstacle != nil:
		return fmt.Sprintf("nothing: %s: %s", decision.Obstacle.Reason, decision.Obstacle.Message), &State{Deployment: view.own(p), Obstacle: decision.Obstacle}
	case write.verb != "":
		return fmt.Sprintf("%s Deployment %q", write.verb, write.deployment), nil
	case contest != nil && hold:
		return fmt.Sprintf("nothing for %v: %s", again.Round(time.Millisecond), contest.Message), &State{Deployment: view.Live, Obstacle: contest}
	default:
		return nothing, &State{Deployment: view.Live, Obstacle: contest}
	}
}

// summary says in one line what a status says.
func (s Status) summary() string {
	var parts []string
	for _, c := range s.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	if len(s.Conditions) > 0 {
		parts = append(parts, s.Conditions[0].Reason)
	}
	return strings.Join(append(parts, fmt.Sprintf("%d available of %d, generation %d", s.AvailableReplicas, s.Replicas, s.ObservedGeneration)), ", ")
}
