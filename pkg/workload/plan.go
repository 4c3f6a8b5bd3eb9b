// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

// plan is what to do about the Deployments of an owner.
type plan struct {
	decision Decision
	// next is the write to carry out now, the zero value if there is none.
	next write
	// blocker is why something else cannot be done now.
	blocker *Blocker
	// state is the state if nothing is written.
	state State
	// failing are the writes that failed and are not due yet.
	failing []write
}

// plan decides what to do for the owner, given what is known of earlier writes.
func (k *Reconciler) plan(o Owner, view View) plan {
	now := k.clock.Now()
	var contest *Blocker
	var p plan
	view.Now = now
	p.state = State{Deployment: view.reported(o)}
	if o.GetDeletionTimestamp() == nil {
		view.Hold, contest, p.state.Again = k.corrections.of(o, p.state.Deployment, now)
	}
	if view.own(o) != nil {
		p.state.Former = leftOver(view.Former)
	}
	p.decision = Decide(o, view)
	p.state.Again = sooner(p.state.Again, p.decision.Again)
	if p.decision.Differing.several() {
		if together := k.failures.get(o, p.decision.together()); together.denied {
			p.blocker = together.blocker // until each field was tried by itself
		}
	}
	for _, w := range p.decision.writes(func(w write) bool { return k.failures.denied(o, w) }) {
		blocker, again := k.failures.of(o, w, now)
		if blocker == nil {
			p.next = w
			break
		}
		if p.failing = append(p.failing, w); p.blocker == nil {
			p.blocker = blocker
		}
		p.state.Again = sooner(p.state.Again, again)
	}
	if p.blocker == nil {
		p.blocker = p.decision.Blocker
	}
	// A field is held and written again even if another blocker hides that.
	if p.state.Blocker = p.blocker; p.state.Blocker == nil {
		p.state.Blocker = contest
	}
	return p
}
