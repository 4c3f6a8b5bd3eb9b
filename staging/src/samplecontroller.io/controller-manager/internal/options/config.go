// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"

	"k8s.io/apiserver/pkg/server/flagz"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	metricsfeatures "k8s.io/component-base/metrics/features"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"samplecontroller.io/controller-manager/internal/plan"
	"samplecontroller.io/controller-manager/internal/server"
	programversion "samplecontroller.io/controller-manager/internal/version"
)

// Config is a set of valid options with what they result in.
type Config struct {
	*Options
	// ClientConfig is the base configuration of all clients. It has no user agent yet. Its content
	// type is that of built-in resources.
	ClientConfig *restclient.Config
	// Serving configures the HTTPS endpoints. It has no health checks yet.
	Serving server.Config
	// Enabled holds the sorted names of the enabled controllers.
	Enabled []string
	// Tracing is the configuration of tracing; nil if it is off.
	Tracing *tracingapi.TracingConfiguration
	// DryRun records what the controllers would write, in a process that makes only dry runs. Else it is nil.
	DryRun *plan.Recorder
}

// Config returns the configuration that valid options result in: see [Options.Validate]. It reads
// the files that the flags name, opens the port, and looks up the cluster's authentication
// settings. It gives up when ctx ends, and starts nothing.
func (o *Options) Config(ctx context.Context) (*Config, error) {
	c, err := o.ConfigWithoutServing()
	if err != nil {
		return nil, err
	}
	if c.Serving, err = o.Server.Config(ctx, o.Client.Connection.Kubeconfig); err != nil {
		return nil, err
	}
	if o.FeatureGates.Enabled(zpagesfeatures.ComponentFlagz) {
		c.Serving.Flags = flagz.NamedFlagSetsReader{FlagSets: *o.Flags()}
	}
	if o.FeatureGates.Enabled(zpagesfeatures.ComponentStatusz) {
		c.Serving.Version = binaryVersion()
	}
	metricsfeatures.ApplyFeatureGates(o.FeatureGates)
	o.applyMetrics()
	return c, nil
}

// ConfigWithoutServing is like [Options.Config] for a process that serves nothing, while another
// one may have the port.
func (o *Options) ConfigWithoutServing() (*Config, error) {
	enabled, err := o.Controllers.Enabled(o.Generic.Selection.Get())
	if err != nil {
		return nil, err
	}
	client, err := o.Client.config()
	if err != nil {
		return nil, err
	}
	tracing, err := o.Tracing.config()
	if err != nil {
		return nil, err
	}
	c := &Config{Options: o, ClientConfig: client, Enabled: enabled, Tracing: tracing}
	if o.Generic.Shadow {
		c.DryRun = plan.NewShadow()
	}
	return c, nil
}

// binaryVersion returns the version that --version prints.
func binaryVersion() compatibility.EffectiveVersion {
	return compatibility.NewEffectiveVersionFromString(programversion.Get().GitVersion, "", "")
}
