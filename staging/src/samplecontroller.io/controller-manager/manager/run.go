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

// process is what a process consists of.
type process struct {
	// Registry knows the names and aliases of all controllers.
	Registry *controller.Registry
	// Informers are those that the controllers have asked for.
	Informers *informers.Factory
	// Controllers are those that are enabled.
	Controllers []controller.Controller
	// Supervision says how they are started and stopped.
	Supervision supervisor.Options
	// Election is what the process must win before they run; nil: it has no rival.
	Election *leadership.Election
	// Gate lets the writes of the controllers pass while the process leads: that of
	// the election, if there is one. nil: their clients are not wrapped by a gate.
	Gate *leadership.Gate
	// WarmStandby has the process campaign only when its caches are filled, so that
	// it takes over without a gap.
	WarmStandby bool
	// Namespace is the one that the controllers serve, empty for all. It is only told:
	// what the informers read decides.
	Namespace string
	// Server is what is served. Run adds the page of package debug, and its checks to the probes: to /healthz one
	// for each controller and one for the watches, to /readyz that the caches are filled,
	// to /livez that no sync is stuck, to all three the election.
	Server server.Config
}

// run runs the process until ctx ends. If it loses the lead it waits, with its
// caches filled, until it leads again. As leader it hands over to a standby whose caches
// are fresh if its own are not, or if its controllers make no progress. It returns nil if
// all that it started has ended and it has released the Lease, if it held it. It returns an
// error before it starts anything if a controller has a loop that watches nothing. If it
// cannot stop the controllers it returns an error, and the process should end.
func run(ctx context.Context, p process) error {
	if err := validate(p.Controllers); err != nil {
		return err
	}
	super := supervisor.New(p.Controllers, p.Supervision)
	// What serves the controllers outlives them: it ends when Run returns.
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
	p.Election.AssessBy(func() error { return cmp.Or(p.Informers.Fresh(), super.Progressing()) })
	if p.WarmStandby && !p.Informers.WaitUntilSettled(ctx) {
		return nil // told to end before
	}
	return p.Election.Run(ctx, lead)
}

// validate refuses controllers with a loop that would never sync.
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

// withReports returns what to serve with what the process tells of itself added.
func withReports(p process, super *supervisor.Supervisor) server.Config {
	// Liveness fails only for what a restart cures.
	live := []healthz.HealthChecker{healthz.PingHealthz}
	if p.Election != nil {
		live = append(live, p.Election)
	}
	watches := healthz.NamedCheck("informer-watch", func(*http.Request) error { return p.Informers.CheckWatches() })
	s := p.Server
	s.Livez = slices.Concat(live, []healthz.HealthChecker{super.LivenessCheck()}, s.Livez)
	s.Readyz = slices.Concat(live, []healthz.HealthChecker{p.Informers}, s.Readyz)
	s.Healthz = slices.Concat(live, []healthz.HealthChecker{watches}, super.HealthChecks(), s.Healthz)
	s.Pages = maps.Clone(s.Pages)
	if s.Pages == nil {
		s.Pages = map[string]http.Handler{}
	}
	s.Pages[debug.Path] = debug.Handler(reporter{p, super})
	s.Notes = func() []string { return notes(p, super) }
	return s
}

// notes says who leads, what each controller is doing, and what cannot be read.
func notes(p process, super *supervisor.Supervisor) []string {
	var lines []string
	if p.Election != nil {
		lines = append(lines, "leader: "+p.Election.Status().String())
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
