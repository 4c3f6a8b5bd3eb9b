// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// What a [cluster.Handover] says.
const became, stopped = "became leader", "stopped leading"

// shown is how far the timeline goes back. The API server keeps Events for an hour by default.
const shown = time.Hour

// timeline is who led when.
type timeline struct {
	// From and To are the ends. Source says where the handovers come from.
	From, To time.Time
	Source   string
	Terms    []term
}

// term is a time in which one process led. End is zero if it still leads.
type term struct {
	Pod        string
	Process    string
	Begin, End time.Time
	// Open is whether the term began before the timeline does, so that Begin is not known.
	Open bool
	// X and Width are the place on the timeline, in thousandths of its width.
	X, Width int
}

// newTimeline returns the timeline of a snapshot: by the Events of the Lease if they can be read and there are any,
// else by what was observed.
func newTimeline(s *snapshot) timeline {
	t := timeline{From: s.Now.Add(-shown), To: s.Now}
	handovers := s.Handovers.Value
	switch {
	case len(handovers) > 0:
		t.Source = "from the Events of the Lease, which the API server keeps for an hour by default"
	case s.Handovers.Err != nil:
		t.Source = "observed since this page was opened, because the Events of the Lease cannot be read: " + short(s.Handovers.Err)
		handovers, t.From = s.Observed, s.Opened
	default:
		t.Source = "observed since this page was opened, because there are no Events of the Lease"
		handovers, t.From = s.Observed, s.Opened
	}
	t.Terms = terms(handovers, s.Lead.Value, t.From)
	if last := len(t.Terms) - 1; last >= 0 && t.Terms[last].End.IsZero() && s.expired() {
		t.Terms[last].End = s.Lead.Value.Renewed // as far as is known
	}
	// A young cluster fills the timeline, too.
	if len(t.Terms) > 0 && t.Terms[0].Begin.After(t.From) {
		t.From = later(t.From, t.Terms[0].Begin.Add(-t.To.Sub(t.Terms[0].Begin)/10))
	}
	for i := range t.Terms {
		t.Terms[i].place(t.From, t.To)
	}
	return t
}

// terms returns the terms after a time, the oldest first.
func terms(handovers []cluster.Handover, lead cluster.Lead, from time.Time) []term {
	var all []term
	for _, h := range handovers {
		open := -1
		for i := range all {
			if all[i].End.IsZero() {
				open = i
			}
		}
		switch {
		case h.What == became && open >= 0 && all[open].Process == h.Process: // it is known already
		case h.What == became:
			if open >= 0 {
				all[open].End = h.Time // it could not say that it stopped
			}
			all = append(all, newTerm(h.Process, h.Time, from))
		case open >= 0 && all[open].Process == h.Process:
			all[open].End = h.Time
		case open < 0:
			ended := newTerm(h.Process, time.Time{}, from)
			ended.End = h.Time
			all = append(all, ended)
		}
	}
	// The Lease knows the leader even if its Event is gone.
	if last := len(all) - 1; lead.Holder != "" && (last < 0 || all[last].Process != lead.Holder) {
		if last >= 0 && all[last].End.IsZero() {
			all[last].End = lead.Since
		}
		all = append(all, newTerm(lead.Holder, lead.Since, from))
	}
	return slices.DeleteFunc(all, func(t term) bool { return !t.End.IsZero() && t.End.Before(from) })
}

func newTerm(process string, begin, from time.Time) term {
	pod, _, _ := strings.Cut(process, "_")
	return term{Pod: pod, Process: process, Begin: begin, Open: begin.Before(from)}
}

// place sets where the term is on a timeline.
func (t *term) place(from, to time.Time) {
	begin, end := t.Begin, t.End
	if t.Open {
		begin = from
	}
	if end.IsZero() {
		end = to
	}
	all := max(to.Sub(from), time.Second)
	t.X = int(1000 * begin.Sub(from) / all)
	t.Width = max(2, int(1000*end.Sub(from)/all)-t.X)
}

// timelineView is a timeline with what the template needs.
type timelineView struct {
	timeline
	Terms []termView
}

// termView is a term with the class of its color, and a number if several processes have the name of its Pod.
type termView struct {
	term
	Class  string
	Number int
}

// listed is how many terms the list below the timeline has.
const listed = 8

// colors is how many colors there are.
const colors = 4

func newTimelineView(s *snapshot) *timelineView {
	v := &timelineView{timeline: newTimeline(s)}
	classes, processes := map[string]int{}, map[string][]string{}
	for _, t := range v.timeline.Terms {
		if _, ok := classes[t.Process]; !ok {
			classes[t.Process] = len(classes) % colors
			processes[t.Pod] = append(processes[t.Pod], t.Process)
		}
	}
	for _, t := range v.timeline.Terms {
		one := termView{term: t, Class: fmt.Sprintf("c%d", classes[t.Process])}
		if same := processes[t.Pod]; len(same) > 1 {
			one.Number = slices.Index(same, t.Process) + 1
		}
		v.Terms = append(v.Terms, one)
	}
	return v
}

// All returns how many terms there are.
func (v *timelineView) All() int { return len(v.Terms) }

// Several returns whether there is more to tell than who leads now.
func (v *timelineView) Several() bool { return len(v.Terms) > 1 }

// Hidden returns whether the list leaves out some.
func (v *timelineView) Hidden() bool { return len(v.Terms) > listed }

// Last returns the last terms, the latest first.
func (v *timelineView) Last() []termView {
	last := slices.Clone(v.Terms[max(0, len(v.Terms)-listed):])
	slices.Reverse(last)
	return last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
