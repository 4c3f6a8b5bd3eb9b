// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/component-base/compatibility"
	metricsfeatures "k8s.io/component-base/metrics/features"
	componentversion "k8s.io/component-base/version"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
)

// Config validates the options and returns what they come to. It reads the files
// that they name, opens the port and asks the API server how to authenticate, which is
// given up when ctx ends; but it starts nothing.
func (o *Options) Config(ctx context.Context) (*config.Config, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	enabled, err := o.Generic.controllers.Enabled(o.Generic.Selection)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := o.Client.config()
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
	c := &config.Config{
		Kubeconfig:                kubeconfig,
		ContentType:               o.Client.Connection.ContentType,
		Server:                    serving,
		Namespace:                 o.Generic.Namespace,
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
