// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/server"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/truncate"
)

// parts are what a process that runs a program consists of.
type parts struct {
	config *options.Config
	shared *controller.Shared
	// controllers are the enabled controllers.
	controllers []controller.Controller
	// supervision configures how the controllers are started and stopped.
	supervision supervisor.Options
	// election must be won before the controllers run. If nil, there is no election.
	election *leadership.Election
	// live applies changes of the configuration file; nil for none.
	live *liveConfig
}

// run runs the process until ctx ends. If it loses the lead, it keeps its caches filled and
// waits to lead again. A leader whose caches are stale or whose controllers make no progress
// hands over to a standby with fresh caches.
//
// run returns nil after everything has ended and the Lease, if held, is released. It returns
// an error before it starts anything if a controller has a loop without watches. It also
// returns an error if it cannot stop the controllers; then the process should exit.
func run(ctx context.Context, p parts) error {
	if err := validate(p.controllers); err != nil {
		return err
	}
	super := supervisor.New(p.controllers, p.supervision)
	// The server and the informers outlive the controllers: they end when run returns.
	serviceCtx, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServices()
	waitForServer, err := server.Start(serviceCtx, withReports(p, super))
	if err != nil {
		return err
	}
	defer func() {
		stopServices()
		waitForServer()
	}()

	p.shared.Informers.Start(serviceCtx)
	defer p.shared.Informers.Shutdown()
	stopPauses, err := p.shared.StartPauses(serviceCtx)
	if err != nil {
		return err
	}
	defer stopPauses()
	if p.live != nil && p.config.File != nil {
		p.apply(super)
		var following sync.WaitGroup
		following.Go(func() {
			p.live.follow(serviceCtx, func(changed ...*pflag.Flag) { p.apply(super, changed...) })
		})
		defer following.Wait()
		defer stopServices()
	}

	lead := func(term *leadership.Term) error { return super.Run(term.Ctx) }
	if p.election == nil {
		return leadership.RunWithoutElection(ctx, p.shared.Gate, lead)
	}
	p.election.AssessBy(func() []string { return unfit(p.shared.Informers, super) })
	if p.config.Generic.WarmStandby && !p.shared.Informers.WaitUntilSettled(ctx) {
		return nil // ctx ended first
	}
	return p.election.Run(ctx, lead)
}

// unfit returns why this process cannot do all the work of a leader.
func unfit(factory *informers.Factory, super *supervisor.Supervisor) []string {
	var reasons []string
	for _, resource := range factory.Stale() {
		reasons = append(reasons, "cache of "+resource+" does not follow the API server")
	}
	for _, queue := range super.Stalled() {
		reasons = append(reasons, "no sync of "+queue+" succeeds")
	}
	return reasons
}

// validate rejects controllers with a loop that could never sync.
func validate(controllers []controller.Controller) error {
	var errs []error
	for _, c := range controllers {
		if looper, ok := c.(supervisor.Looper); ok {
			for _, l := range looper.Loops() {
				errs = append(errs, l.Validate())
			}
		}
	}
	return errors.Join(errs...)
}

// withReports returns the server configuration with the page of package debug, notes, and checks:
// all probes check the election; /healthz the Lease, each controller and the watches; /readyz the
// Lease and that the caches are filled; /livez that no sync is stuck.
func withReports(p parts, super *supervisor.Supervisor) server.Config {
	// Liveness fails only for problems that a restart fixes.
	live := []healthz.HealthChecker{healthz.PingHealthz}
	if p.election != nil {
		live = append(live, p.election)
	}
	ready := []healthz.HealthChecker{p.shared.Informers}
	if p.election != nil {
		ready = append(ready, healthz.NamedCheck("lease", p.election.CheckLease))
	}
	watches := healthz.NamedCheck("informer-watch", func(*http.Request) error { return p.shared.Informers.CheckWatches() })
	s := p.config.Serving
	s.Livez = slices.Concat(live, []healthz.HealthChecker{super.LivenessCheck()}, s.Livez)
	s.Readyz = slices.Concat(live, ready, s.Readyz)
	s.Healthz = slices.Concat(live, ready[1:], []healthz.HealthChecker{watches}, super.HealthChecks(), s.Healthz)
	s.Pages = maps.Clone(s.Pages)
	if s.Pages == nil {
		s.Pages = map[string]http.Handler{}
	}
	s.Pages[debug.Path] = debug.Handler(reporter{p, super})
	s.Pages[deletionsPath] = deletions(reporter{p, super})
	s.Notes = func() []string { return notes(p, super) }
	return s
}

// notes returns the leader, the state of each controller, and the resources that cannot be
// read.
func notes(p parts, super *supervisor.Supervisor) []string {
	var lines []string
	switch {
	case p.election != nil:
		lines = append(lines, "leader: "+p.election.Status().String())
	case p.shared.DryRun.IsShadow():
		lines = append(append(lines, "leader: "+shadowNote), shadowNotes(p)...)
	default:
		lines = append(lines, "leader: leader election is off: run one replica only")
	}
	for _, status := range super.Status(0) {
		lines = append(lines, status.Controller+": "+status.String())
	}
	for _, resource := range p.shared.Informers.Resources() {
		if err := cmp.Or(resource.Err, resource.Failure); err != nil {
			lines = append(lines, resource.Name()+": "+truncate.Error(err))
		}
	}
	if problem := p.live.problem(); problem != "" {
		lines = append(lines, "configuration file refused: "+problem)
	}
	return lines
}
