// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/supervisor"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

// Run runs the daemon until ctx ends. It makes all that the
// process consists of; the order in which that starts and stops is in
// [manager.Run].
func Run(ctx context.Context, registry *controller.Registry[*ControllerContext], c *config.CompletedConfig) error {
	klog.FromContext(ctx).Info("Starting "+options.ComponentName, "version", version.Get().GitVersion)
	removePage, err := registerConfigz(c)
	if err != nil {
		return err
	}
	defer removePage()
	clients := newClients(c, c.LeaderElection.Gate(processMetrics().leadership))
	events := newBroadcaster(ctx)
	defer events.Shutdown()
	if err := startEvents(ctx, events, clients); err != nil {
		return err
	}
	cc, err := newControllerContext(registry, clients, events)
	if err != nil {
		return err
	}
	allowed := registry.AllowedBy(c.FeatureGates, c.Enabled)
	prepareWrites(registry, allowed)
	controllers, err := registry.Build(ctx, cc, allowed)
	if err != nil {
		return err
	}
	election, err := c.LeaderElection.Election(cc.rest("leader-election", noTimeout), cc.gate, cc.recorder(options.ComponentName), processMetrics().leadership)
	if err != nil {
		return err
	}
	return manager.Run(ctx, manager.Config{
		Informers:   cc.Informers,
		Controllers: controllers,
		Supervision: supervision(c, clients, sets.List(sets.New(registry.Names()...).Delete(allowed...))),
		Election:    election,
		Gate:        cc.gate,
		WarmStandby: c.WarmStandby,
		Namespace:   c.Namespace,
		Server:      c.Server,
	})
}

// supervision returns how controllers are started, stopped and judged.
func supervision(c *config.CompletedConfig, clients clients, disabled []string) supervisor.Options {
	return supervisor.Options{
		StartInterval:   c.ControllerStartInterval,
		ShutdownTimeout: c.ControllerShutdownTimeout,
		Thresholds:      supervisor.Thresholds{RunningSync: 2 * c.SyncTimeout, StuckSync: 10 * c.SyncTimeout},
		Denied:          clients.denied,
		Disabled:        disabled,
		Metrics:         processMetrics().controllers,
	}
}

// registerConfigz has /configz show the configuration. Pages exist once in a
// process; the returned function takes this one off again.
func registerConfigz(c *config.CompletedConfig) (remove func(), err error) {
	page, err := configz.New(config.ConfigzName)
	if err != nil {
		return nil, fmt.Errorf("registering configz: %w", err)
	}
	if err := page.Set(c.Configz()); err != nil {
		return nil, fmt.Errorf("setting configz: %w", err)
	}
	return func() { configz.Delete(config.ConfigzName) }, nil
}
