// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/version"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
	"samplecontroller.io/controller-manager/supervisor"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

// Run runs the daemon until ctx ends or leadership is lost. What is started last
// is stopped first: controllers drain, then the Lease is released, then informers,
// probes and Events stop.
func Run(ctx context.Context, registry *controller.Registry[*ControllerContext], c *config.CompletedConfig) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting "+options.ComponentName, "version", version.Get().GitVersion)
	// What serves the controllers outlives them: it ends when Run returns.
	serviceCtx, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServices()

	events := newBroadcaster(ctx)
	defer events.Shutdown()
	if err := startEvents(events, clients{c}); err != nil {
		return err
	}
	cc, err := newControllerContext(c, events)
	if err != nil {
		return err
	}
	controllers, err := registry.Build(ctx, cc, registry.AllowedBy(c.FeatureGates, c.Enabled))
	if err != nil {
		return err
	}
	super := supervisor.New(controllers, supervisor.Options{
		StartInterval:   c.ControllerStartInterval,
		ShutdownTimeout: c.ControllerShutdownTimeout,
	})
	election, err := newElection(cc)
	if err != nil {
		return err
	}

	waitForServer, err := startServer(serviceCtx, c, cc, super, election)
	if err != nil {
		return err
	}
	defer func() {
		stopServices()
		waitForServer()
	}()

	cc.Informers.Start(serviceCtx)
	defer cc.Informers.Shutdown()

	lead := func(term *leadership.Term) error { return super.Run(term.Ctx) }
	if election == nil {
		return leadership.Endless(ctx, lead)
	}
	return election.Run(ctx, lead)
}

// startServer serves probes, metrics and debugging endpoints until ctx ends. The
// returned function waits until it has.
func startServer(ctx context.Context, c *config.CompletedConfig, cc *ControllerContext, super *supervisor.Supervisor, election *leadership.Election) (wait func(), err error) {
	if c.SecureServing == nil {
		return func() {}, nil
	}
	page, err := configz.New(config.ConfigzName)
	if err != nil {
		return nil, fmt.Errorf("registering configz: %w", err)
	}
	if err := page.Set(c.Configz()); err != nil {
		return nil, fmt.Errorf("setting configz: %w", err)
	}
	// Liveness fails only for what a restart cures.
	live := []healthz.HealthChecker{healthz.PingHealthz}
	if election != nil {
		live = append(live, election)
	}
	s := server.Config{
		Name:           options.ComponentName,
		SecureServing:  c.SecureServing,
		Authentication: &c.Authentication,
		Authorization:  &c.Authorization,
		Debugging:      c.Debugging,
		Livez:          live,
		Readyz:         append([]healthz.HealthChecker{cc.Informers}, live...),
		Healthz:        append(super.HealthChecks(), live...),
	}
	if c.FeatureGates.Enabled(zpagesfeatures.ComponentFlagz) {
		s.Flags = c.Flagz
	}
	if c.FeatureGates.Enabled(zpagesfeatures.ComponentStatusz) {
		s.Version = c.Version
	}
	waitForServer, err := server.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	return func() {
		waitForServer()
		configz.Delete(config.ConfigzName)
	}, nil
}
