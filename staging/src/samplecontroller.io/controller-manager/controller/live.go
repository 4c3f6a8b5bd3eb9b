// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"samplecontroller.io/controller-manager/internal/live"
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
