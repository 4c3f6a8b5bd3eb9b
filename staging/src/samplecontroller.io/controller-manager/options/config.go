// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	"k8s.io/apiserver/pkg/server/flagz"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	metricsfeatures "k8s.io/component-base/metrics/features"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"samplecontroller.io/controller-manager/controller"
	programversion "samplecontroller.io/controller-manager/internal/version"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
)

// Config is the validated configuration that the options result in.
type Config struct {
	// Client is the base configuration of all clients. It has no user agent yet. Its content type
	// is that of built-in resources.
	Client *restclient.Config

	// Server configures the HTTPS endpoints. It has no health checks yet.
	Server server.Config

	// Namespace is the only namespace that the controllers serve; empty means all.
	Namespace string

	// Controllers is the controller map. Enabled holds the sorted names of the enabled
	// controllers. Workers maps each controller to its number of concurrent syncs.
	Controllers *controller.Registry
	Enabled     []string
	Workers     map[string]int

	// UseServiceAccountCredentials makes each controller write as a ServiceAccount of its own.
	UseServiceAccountCredentials bool

	// LeaderElection configures leader election, and limits the time of each controller
	// request.
	LeaderElection            *leadership.Options
	WarmStandby               bool
	SyncTimeout               time.Duration
	ControllerShutdownTimeout time.Duration
}

// Config validates the options and returns the resulting configuration. It reads the files
// that the flags name, opens the port, and looks up the cluster's authentication settings. It
// gives up when ctx ends, and starts nothing.
func (o *Options) Config(ctx context.Context) (*Config, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	enabled, err := o.Controllers.Enabled(o.Generic.Selection)
	if err != nil {
		return nil, err
	}
	client, err := o.Client.config()
	if err != nil {
		return nil, err
	}
	serving, err := o.Server.Config(ctx, o.Client.Connection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if o.FeatureGates.Enabled(zpagesfeatures.ComponentFlagz) {
		serving.Flags = flagz.NamedFlagSetsReader{FlagSets: *o.Flags()}
	}
	if o.FeatureGates.Enabled(zpagesfeatures.ComponentStatusz) {
		serving.Version = binaryVersion()
	}
	c := &Config{
		Client:                    client,
		Server:                    serving,
		Namespace:                 o.Generic.Namespace,
		Controllers:               o.Controllers,
		Enabled:                   enabled,
		Workers:                   map[string]int{},
		LeaderElection:            o.LeaderElection,
		SyncTimeout:               o.Generic.SyncTimeout,
		WarmStandby:               o.Generic.WarmStandby,
		ControllerShutdownTimeout: o.Generic.ControllerShutdownTimeout,

		UseServiceAccountCredentials: o.Generic.UseServiceAccountCredentials,
	}
	for name, count := range o.Workers.Counts {
		c.Workers[name] = *count
	}
	metricsfeatures.ApplyFeatureGates(o.FeatureGates)
	o.applyMetrics()
	return c, nil
}

// binaryVersion returns the version that --version prints.
func binaryVersion() compatibility.EffectiveVersion {
	return compatibility.NewEffectiveVersionFromString(programversion.Get().GitVersion, "", "")
}
