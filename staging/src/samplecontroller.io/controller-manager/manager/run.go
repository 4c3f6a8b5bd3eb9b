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

	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
	"samplecontroller.io/controller-manager/supervisor"
)

// process holds the parts of a process.
type process struct {
	// Registry resolves the names and aliases of all controllers.
	Registry *controller.Registry
	// Informers holds the informers that the controllers use.
	Informers *informers.Factory
	// Controllers are the enabled controllers.
	Controllers []controller.Controller
	// Supervision configures how the controllers are started and stopped.
	Supervision supervisor.Options
	// Election must be won before the controllers run. If nil, there is no election.
	Election *leadership.Election
	// Gate allows writes of the controllers while the process leads. It is the gate of the
	// election, if there is one. If nil, clients have no gate.
	Gate *leadership.Gate
	// WarmStandby makes the process campaign only after its caches are filled, so that it can
	// take over without a gap.
	WarmStandby bool
	// Namespace is the only namespace that the controllers serve; empty means all. It is only
	// reported: the informers are configured separately.
	Namespace string
	// Server configures the endpoints. run adds the page of package debug, and checks to the
	// probes: to all of them the election; to /healthz the Lease, each controller and the
	// watches; to /readyz the Lease and that the caches are filled; to /livez that no sync is stuck.
	Server server.Config
}

// run runs the process until ctx ends. If it loses the lead, it keeps its caches filled and
// waits to lead again. A leader whose caches are stale or whose controllers make no progress
// hands over to a standby with fresh caches.
//
// run returns nil after everything has ended and the Lease, if held, is released. It returns
// an error before it starts anything if a controller has a loop without watches. It also
// returns an error if it cannot stop the controllers; then the process should exit.
func run(ctx context.Context, p process) error {
	if err := validate(p.Controllers); err != nil {
		return err
	}
	super := supervisor.New(p.Controllers, p.Supervision)
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

	p.Informers.Start(serviceCtx)
	defer p.Informers.Shutdown()

	lead := func(term *leadership.Term) error { return super.Run(term.Ctx) }
	if p.Election == nil {
		return leadership.RunWithoutElection(ctx, p.Gate, lead)
	}
	p.Election.AssessBy(func() []string { return unfit(p.Informers, super) })
	if p.WarmStandby && !p.Informers.WaitUntilSettled(ctx) {
		return nil // ctx ended first
	}
	return p.Election.Run(ctx, lead)
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

// withReports returns the server configuration with the checks, pages and notes of the
// process.
func withReports(p process, super *supervisor.Supervisor) server.Config {
	// Liveness fails only for problems that a restart fixes.
	live := []healthz.HealthChecker{healthz.PingHealthz}
	if p.Election != nil {
		live = append(live, p.Election)
	}
	ready := []healthz.HealthChecker{p.Informers}
	if p.Election != nil {
		ready = append(ready, healthz.NamedCheck("lease", p.Election.CheckLease))
	}
	watches := healthz.NamedCheck("informer-watch", func(*http.Request) error { return p.Informers.CheckWatches() })
	s := p.Server
	s.Livez = slices.Concat(live, []healthz.HealthChecker{super.LivenessCheck()}, s.Livez)
	s.Readyz = slices.Concat(live, ready, s.Readyz)
	s.Healthz = slices.Concat(live, ready[1:], []healthz.HealthChecker{watches}, super.HealthChecks(), s.Healthz)
	s.Pages = maps.Clone(s.Pages)
	if s.Pages == nil {
		s.Pages = map[string]http.Handler{}
	}
	s.Pages[debug.Path] = debug.Handler(reporter{p, super})
	s.Notes = func() []string { return notes(p, super) }
	return s
}

// notes returns the leader, the state of each controller, and the resources that cannot be
// read.
func notes(p process, super *supervisor.Supervisor) []string {
	var lines []string
	if p.Election != nil {
		lines = append(lines, "leader: "+p.Election.Status().String())
	} else {
		lines = append(lines, "leader: leader election is off: run one replica only")
	}
	for _, status := range super.Status(0) {
		lines = append(lines, status.Controller+": "+status.String())
	}
	for _, resource := range p.Informers.Resources() {
		if err := cmp.Or(resource.Err, resource.Failure); err != nil {
			lines = append(lines, resource.Name()+": "+truncate.Error(err))
		}
	}
	return lines
}
