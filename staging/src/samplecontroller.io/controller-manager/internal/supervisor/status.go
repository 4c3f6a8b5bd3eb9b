// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/reconcile"
)

// State is what a controller is doing.
type State string

// The states of a controller.
const (
	// Disabled: not enabled in this process, or switched off.
	Disabled State = "Disabled"
	// Standby: not running, because this process does not lead.
	Standby State = "Standby"
	// Starting: about to run.
	Starting State = "Starting"
	// WaitingForAPI: started, but an API that it reads is not installed.
	WaitingForAPI State = "WaitingForAPI"
	// Running: working.
	Running State = "Running"
	// Degraded: failed and waiting for a restart, without a needed permission, the API server
	// returns an error for a list that the controller needs, or it does not serve a
	// subresource that the controller writes.
	Degraded State = "Degraded"
	// Stopping: told to stop, and not yet stopped.
	Stopping State = "Stopping"
)

// States returns all states.
func States() []State {
	return []State{Disabled, Standby, Starting, WaitingForAPI, Running, Degraded, Stopping}
}

// Status is the state of one controller.
type Status struct {
	// Controller is the name of the controller.
	Controller string
	// State is what the controller is doing.
	State State
	// Since is when the state began.
	Since time.Time
	// Reason is why, if there is a reason. For a Running controller it is what is paused.
	// It may quote the API server, and so values of objects.
	Reason string
	// Loops is the progress of the loops, if the controller is a [Looper].
	Loops []reconcile.Progress
}

// Looper is a controller that consists of loops. They contribute to its state, its health
// check and its metrics.
type Looper interface {
	Loops() []*reconcile.Loop
}

// Sourced is a controller with sources of keys: functions that run beside its loops. A controller that does
// not stop because of them is reported so.
type Sourced interface {
	// RunningSources returns the number of sources that have not returned. It is safe for concurrent use.
	RunningSources() int
}

// String returns the status for people: "Running since 2026-01-02T03:04:05Z".
func (s Status) String() string {
	text := string(s.State) + " since " + s.Since.UTC().Format(time.RFC3339)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Status returns the status of each controller, sorted by name, with at most limit entries
// in each list of its loops.
func (s *Supervisor) Status(limit int) []Status {
	var all []Status
	for _, r := range s.runners {
		all = append(all, s.statusOf(r, limit))
	}
	for _, name := range s.options.Disabled {
		if !slices.ContainsFunc(s.runners, func(r *runner) bool { return r.controller.Name() == name }) {
			all = append(all, Status{Controller: name, State: Disabled, Since: s.since})
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Controller, b.Controller) })
	return all
}

// statusOf combines the state of the runner with that of the loops and permissions.
func (s *Supervisor) statusOf(r *runner, limit int) Status {
	status := r.own()
	status.Loops = r.progress(limit)
	if status.State != Running {
		return status
	}
	if why := refused(status.Loops); why != nil {
		return status.become(Degraded, truncate.Error(why.Blocker), why.Since)
	}
	if s.options.Denied != nil {
		if why, since := s.options.Denied(status.Controller); why != nil {
			return status.become(Degraded, truncate.Error(why), since)
		}
	}
	status = status.withBlockers()
	if s.options.Note != nil && status.State == Running && status.Reason == "" {
		status.Reason = truncate.Text(s.options.Note(status.Controller))
	}
	return status
}

// refused returns a loop that cannot read because the API server returns an error other than
// NotFound, or nil if there is none.
func refused(loops []reconcile.Progress) *reconcile.Progress {
	for i := range loops {
		if status := apierrors.APIStatus(nil); errors.As(loops[i].Blocker, &status) &&
			!apierrors.IsNotFound(loops[i].Blocker) {
			return &loops[i]
		}
	}
	return nil
}

// withBlockers returns the status of a running controller, some or all of whose loops may be
// paused.
func (s Status) withBlockers() Status {
	var paused []string
	state, since := Starting, s.Since
	for _, p := range s.Loops {
		if p.Since.After(since) {
			since = p.Since
		}
		if p.Blocker == nil {
			continue
		}
		if apierrors.IsNotFound(p.Blocker) {
			state = WaitingForAPI
		}
		reason := truncate.Error(p.Blocker)
		if p.Queue != s.Controller {
			reason = p.Queue + " is paused: " + reason
		}
		paused = append(paused, reason)
	}
	if len(paused) == 0 || len(paused) < len(s.Loops) {
		state = Running
	}
	return s.become(state, strings.Join(paused, "; "), since)
}

func (s Status) become(state State, reason string, since time.Time) Status {
	s.State, s.Reason, s.Since = state, reason, since
	return s
}

// own returns the state of the runner itself.
func (r *runner) own() Status {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.status
}

func (r *runner) progress(limit int) []reconcile.Progress {
	var all []reconcile.Progress
	for _, l := range r.loops {
		all = append(all, l.Progress(limit))
	}
	return all
}
