// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/reconcile"
)

// A running controller is unhealthy if one of these holds, if a sync takes longer than twice the
// sync timeout, or if an object is postponed for longer than a minute: see [reconcile.ErrStale].
const (
	// maxWait is how long an object may wait for a worker.
	maxWait = 5 * time.Minute
	// maxFailing objects must fail, and no sync have succeeded for maxNoSuccess, for the
	// controller to count as the cause.
	maxFailing   = 5
	maxNoSuccess = 5 * time.Minute
)

// HealthChecks returns one check for each controller, under its name, sorted. It fails while
// the controller is degraded, and while it runs without progress. A controller that waits
// for its API, for leadership or for work is healthy.
func (s *Supervisor) HealthChecks() []healthz.HealthChecker {
	var checks []healthz.HealthChecker
	for _, r := range s.runners {
		checks = append(checks, healthz.NamedCheck(r.controller.Name(), func(*http.Request) error { return s.check(r) }))
	}
	slices.SortFunc(checks, func(a, b healthz.HealthChecker) int { return cmp.Compare(a.Name(), b.Name()) })
	return checks
}

// LivenessCheck returns a check that fails while a sync takes longer than ten times the sync
// timeout. Only a restart frees the worker of such a sync.
func (s *Supervisor) LivenessCheck() healthz.HealthChecker {
	return healthz.NamedCheck("stuck-syncs", func(*http.Request) error {
		var errs []error
		for _, r := range s.runners {
			for _, p := range r.progress(1) {
				if err := tooLong(p.Running, 10*s.options.SyncTimeout, "has been syncing"); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", r.controller.Name(), err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

func (s *Supervisor) check(r *runner) error {
	status := s.statusOf(r, 1)
	switch status.State {
	case Degraded:
		return errors.New(status.String())
	case Running:
		var errs []error
		for _, p := range status.Loops {
			errs = append(errs, s.progressOf(p, status.Since))
		}
		return errors.Join(errs...)
	default:
		return nil
	}
}

// Stalled returns the names of the queues that make no progress for a reason that may lie in
// this process, sorted. A queue makes no progress if no sync has succeeded for 5 minutes, and
// syncs do not end, objects wait for a worker, or many fail without a response of the API server.
// With a response, another process would do no better.
func (s *Supervisor) Stalled() []string {
	var stalled []string
	for _, r := range s.runners {
		status := s.statusOf(r, 1)
		if status.State != Running {
			continue
		}
		for _, p := range status.Loops {
			answered := p.Failing >= maxFailing && len(p.Failures) > 0 && p.Failures[0].Answered
			if s.progressOf(p, status.Since) != nil && !answered &&
				time.Since(latest(p.LastSuccess, status.Since)) > maxNoSuccess {
				stalled = append(stalled, p.Queue)
			}
		}
	}
	slices.Sort(stalled)
	return stalled
}

// progressOf returns why a loop makes no progress. since is when its controller started to run.
func (s *Supervisor) progressOf(p reconcile.Progress, since time.Time) error {
	if err := tooLong(p.Running, 2*s.options.SyncTimeout, "has been syncing"); err != nil {
		return err
	}
	if err := tooLong(p.Waiting, maxWait, "has been waiting for a worker"); err != nil {
		return err
	}
	if p.Postponed.Total > 0 {
		first := p.Postponed.First[0]
		return fmt.Errorf("%s has not been synced since %s: %s", first.Key, first.Time.UTC().Format(time.RFC3339), first.Error)
	}
	if last := latest(p.LastSuccess, since); p.Failing >= maxFailing && time.Since(last) > maxNoSuccess {
		err := fmt.Errorf("%d objects fail and none has succeeded since %s", p.Failing, last.UTC().Format(time.RFC3339))
		if len(p.Failures) > 0 {
			err = fmt.Errorf("%w; %s: %s", err, p.Failures[0].Key, p.Failures[0].Error)
		}
		return err
	}
	return nil
}

// tooLong returns an error if an entry has been running or waiting for longer than most.
func tooLong(entries reconcile.Entries, most time.Duration, what string) error {
	for _, entry := range entries.First {
		if time.Since(entry.Time) > most {
			return fmt.Errorf("%s %s since %s, longer than %v", entry.Key, what, entry.Time.UTC().Format(time.RFC3339), most)
		}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
