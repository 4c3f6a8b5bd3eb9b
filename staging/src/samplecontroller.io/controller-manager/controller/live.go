// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"time"

	"samplecontroller.io/controller-manager/internal/live"
	"samplecontroller.io/controller-manager/reconcile"
)

// LiveDuration is the value of a duration flag that can change while the program runs: see --config. Make it
// with [NewLiveDuration], add it in [Descriptor.Flags] by FlagSet.Var, check it in [Descriptor.Validate] by
// [LiveDuration.Validate], and read it by Get at each use.
type LiveDuration struct{ *live.Value[time.Duration] }

// NewLiveDuration returns a duration with a default. It must be at least least, and at most a year.
func NewLiveDuration(value, least time.Duration) *LiveDuration {
	check := func(d time.Duration) error { return checkDuration(d, least) }
	return &LiveDuration{live.New(live.Duration(), value, check)}
}

// Validate returns an error if the value of the named flag is invalid.
func (d *LiveDuration) Validate(flag string) []error { return named(flag, d.Check()) }

// setsWorkersOf makes the flag of a controller set the number of workers of a loop.
func (s *Shared) setsWorkersOf(name string, loop *reconcile.Loop) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.resizable == nil {
		s.resizable = map[string][]*reconcile.Loop{}
	}
	s.resizable[name] = append(s.resizable[name], loop)
	loop.SetWorkers(s.Workers(name))
}

// WorkersChanged changes the numbers of workers of a controller's loops, unless the controller has chosen them
// itself by [reconcile.WithWorkers]. Call it when the result of Workers for it has changed. It is safe for
// concurrent use.
func (s *Shared) WorkersChanged(name string) {
	s.mutex.Lock()
	loops := slices.Clone(s.resizable[name])
	s.mutex.Unlock()
	for _, loop := range loops {
		if workers := s.Workers(name); workers != loop.Workers() {
			loop.SetWorkers(workers)
		}
	}
}

// IntervalChanged reconciles all objects of all controllers again, so that what waits for the end of an interval
// waits for that of the new one. Call it when a [LiveDuration] has changed. It is safe for concurrent use.
func (s *Shared) IntervalChanged() { s.enqueueAll("", "interval changed") }
