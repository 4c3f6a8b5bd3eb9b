// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/server/healthz"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
	"samplecontroller.io/controller-manager/supervisor"
)

// Config is what a process consists of.
type Config struct {
	// Informers are those that the controllers have asked for.
	Informers *informers.Handle
	// Controllers are those that are enabled.
	Controllers []controller.Controller
	// Supervision says how they are started and stopped.
	Supervision supervisor.Options
	// Election is whom the process must win before they run; nil: it has no rival.
	Election *leadership.Election
	// Server is what is served. Run adds its checks to the probes: to /healthz one
	// for each controller, to /readyz the informers, to all three the election.
	Server server.Config
}

// Run runs the process until ctx ends or leadership is lost. It returns nil if all
// that it started has ended, and the Lease, if it was held, has been given up.
func Run(ctx context.Context, c Config) error {
	super := supervisor.New(c.Controllers, c.Supervision)
	// What serves the controllers outlives them: it ends when Run returns.
	serviceCtx, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServices()
	waitForServer, err := server.Start(serviceCtx, withProbes(c, super))
	if err != nil {
		return err
	}
	defer func() {
		stopServices()
		waitForServer()
	}()

	c.Informers.Start(serviceCtx)
	defer c.Informers.Shutdown()

	lead := func(term *leadership.Term) error { return super.Run(term.Ctx) }
	if c.Election == nil {
		return leadership.Endless(ctx, lead)
	}
	return c.Election.Run(ctx, lead)
}

// withProbes returns what to serve with the checks of the process added.
func withProbes(c Config, super *supervisor.Supervisor) server.Config {
	// Liveness fails only for what a restart cures.
	live := []healthz.HealthChecker{healthz.PingHealthz}
	if c.Election != nil {
		live = append(live, c.Election)
	}
	s := c.Server
	s.Livez = slices.Concat(live, s.Livez)
	s.Readyz = slices.Concat(live, []healthz.HealthChecker{c.Informers}, s.Readyz)
	s.Healthz = slices.Concat(live, super.HealthChecks(), s.Healthz)
	return s
}
