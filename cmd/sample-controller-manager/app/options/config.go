// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"

	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics"
	metricsfeatures "k8s.io/component-base/metrics/features"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
)

// Config validates the options and returns what they come to. It reads the files
// that they name and opens the port, but starts nothing.
func (o *Options) Config() (*config.Config, error) {
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
	c := &config.Config{
		Kubeconfig:                kubeconfig,
		ContentType:               o.Client.Connection.ContentType,
		WriteTimeout:              o.Client.WriteTimeout,
		Debugging:                 *o.Debugging.DebuggingConfiguration,
		Flagz:                     flagz.NamedFlagSetsReader{FlagSets: *o.Flags()},
		Enabled:                   enabled,
		Workers:                   map[string]int{},
		FeatureGates:              o.FeatureGates,
		Version:                   compatibility.NewEffectiveVersionFromString(kubernetesVersion.String(), "", ""),
		LeaderElection:            o.LeaderElection.LeaderElectionConfiguration,
		MinResyncPeriod:           o.Generic.MinResyncPeriod,
		ControllerStartInterval:   o.Generic.ControllerStartInterval,
		ControllerShutdownTimeout: o.Generic.ControllerShutdownTimeout,
	}
	for name, count := range o.Workers.Counts {
		c.Workers[name] = *count
	}
	if err := o.serve(c); err != nil {
		return nil, err
	}
	metricsfeatures.ApplyFeatureGates(o.FeatureGates)
	o.applyMetrics()
	return c, nil
}

// applyMetrics applies the metrics flags that were given: the library would log an
// error for lists of allowed labels that were not.
func (o *Options) applyMetrics() {
	if o.Metrics.AllowListMapping != nil || o.Metrics.AllowListMappingManifest != "" {
		o.Metrics.Apply()
		return
	}
	metrics.SetDisabledMetrics(o.Metrics.DisabledMetrics)
	if o.Metrics.ShowHiddenMetricsForVersion != "" {
		metrics.SetShowHidden()
	}
}

// serve fills in what is needed to serve.
func (o *Options) serve(c *config.Config) error {
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("making a self-signed certificate: %w", err)
	}
	if err := o.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		return fmt.Errorf("--secure-port: %w", err)
	}
	if c.SecureServing == nil {
		return nil
	}
	if o.Authentication.RemoteKubeConfigFile == "" {
		o.Authentication.RemoteKubeConfigFile = o.Client.Connection.Kubeconfig
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = o.Client.Connection.Kubeconfig
	}
	if err := o.Authentication.ApplyTo(&c.Authentication, c.SecureServing, nil); err != nil {
		return fmt.Errorf("setting up delegated authentication: %w", err)
	}
	if err := o.Authorization.ApplyTo(&c.Authorization); err != nil {
		return fmt.Errorf("setting up delegated authorization: %w", err)
	}
	return nil
}
