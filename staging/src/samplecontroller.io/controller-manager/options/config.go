// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	metricsfeatures "k8s.io/component-base/metrics/features"
	componentversion "k8s.io/component-base/version"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
)

// Config is what the options come to, ready to run.
type Config struct {
	// Client says how to reach the API server, before any client has put its name to it.
	// ContentType is what clients of built-in resources speak.
	Client      *restclient.Config
	ContentType string

	// Server says what is served, and to whom. It lacks the checks of the probes.
	Server server.Config

	// Namespace is the one that the controllers serve, empty for all.
	Namespace string

	// Controllers is the controller map. Enabled are the names of the enabled controllers, sorted; Workers is how many syncs
	// each runs at once.
	Controllers  *controller.Registry
	Enabled      []string
	Workers      map[string]int
	FeatureGates featuregate.FeatureGate

	// ControllerFlags has the values of the controllers' own flags by name of the flag, also
	// of disabled controllers.
	ControllerFlags map[string]string

	// LeaderElection says whether and how to campaign, and how long each request of
	// a controller may take.
	LeaderElection            *leadership.Options
	WarmStandby               bool
	MinResyncPeriod           time.Duration
	SyncTimeout               time.Duration
	ControllerStartInterval   time.Duration
	ControllerShutdownTimeout time.Duration
}

// Config validates the options and returns what they come to. It reads the files
// that they name, opens the port and asks the API server how to authenticate, which is
// given up when ctx ends; but it starts nothing.
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
		ContentType:               o.Client.Connection.ContentType,
		Server:                    serving,
		Namespace:                 o.Generic.Namespace,
		Controllers:               o.Controllers,
		Enabled:                   enabled,
		Workers:                   map[string]int{},
		FeatureGates:              o.FeatureGates,
		LeaderElection:            o.LeaderElection,
		ControllerFlags:           map[string]string{},
		SyncTimeout:               o.Generic.SyncTimeout,
		WarmStandby:               o.Generic.WarmStandby,
		MinResyncPeriod:           o.Generic.MinResyncPeriod,
		ControllerStartInterval:   o.Generic.ControllerStartInterval,
		ControllerShutdownTimeout: o.Generic.ControllerShutdownTimeout,
	}
	for name, count := range o.Workers.Counts {
		c.Workers[name] = *count
		o.Flags().FlagSet(name).VisitAll(func(f *pflag.Flag) { c.ControllerFlags[f.Name] = f.Value.String() })
	}
	metricsfeatures.ApplyFeatureGates(o.FeatureGates)
	o.applyMetrics()
	return c, nil
}

// binaryVersion returns the version of this program, as --version prints it.
func binaryVersion() compatibility.EffectiveVersion {
	return compatibility.NewEffectiveVersionFromString(componentversion.Get().GitVersion, "", "")
}
