// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options holds the settings of the daemon: one file for each concern,
// each with its flags, their validation and what they come to. All settings are
// validated together, before anything starts.
package options

import (
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"
	metricsfeatures "k8s.io/component-base/metrics/features"
	"k8s.io/component-base/version/verflag"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/server"
)

// ComponentName is the name of the daemon: of its Lease, its user agent, its
// certificate and its pages.
const ComponentName = "sample-controller-manager"

// DefaultPort is the port of HTTPS. kube-controller-manager has 10257, the
// scheduler 10259.
const DefaultPort = 10261

// Controllers is what the options need to know of the controller map.
type Controllers interface {
	// Names of all controllers, sorted.
	Names() []string
	// DisabledByDefault returns the names of those that "*" does not enable.
	DisabledByDefault() []string
	// Enabled returns the names of those that a selection enables.
	Enabled(selection []string) ([]string, error)
	// AddFlags adds the flags of each controller to the section of its name.
	AddFlags(sections *cliflag.NamedFlagSets)
	// Validate returns one error for each invalid value of those flags.
	Validate() []error
	// Workers returns the default concurrency of a controller.
	Workers(name string) int
}

// Options are all settings of the daemon.
type Options struct {
	Generic        *GenericOptions
	Client         *ClientOptions
	LeaderElection *leadership.Options
	Workers        *WorkersOptions
	Server         *server.Options
	Metrics        *metrics.Options
	Logs           *logs.Options
	// FeatureGates are the gates of the libraries and of the controllers.
	FeatureGates featuregate.MutableVersionedFeatureGate

	flags cliflag.NamedFlagSets
}

// kubernetesVersion is the minor version of the libraries, by which their feature
// gates have their defaults.
var kubernetesVersion = version.MustParse("1.37")

// NewOptions returns the defaults for the given controllers.
func NewOptions(controllers Controllers) *Options {
	o := &Options{
		Generic:        newGenericOptions(controllers),
		Client:         newClientOptions(),
		LeaderElection: leadership.NewOptions(ComponentName),
		Workers:        newWorkersOptions(controllers),
		Server:         server.NewOptions(ComponentName, DefaultPort),
		Metrics:        metrics.NewOptions(),
		Logs:           logs.NewOptions(),
		FeatureGates:   featuregate.NewVersionedFeatureGate(kubernetesVersion),
	}
	// k8s.io/apiserver takes the version that is stamped into the binary for its
	// own, and at v0.1 all of its feature gates would be off.
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(kubernetesVersion); err != nil {
		panic(err) // nothing has set it before
	}
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{
		logsapi.AddFeatureGates, metricsfeatures.AddFeatureGates, zpagesfeatures.AddFeatureGates,
	} {
		if err := add(o.FeatureGates); err != nil {
			panic(err) // two libraries with one gate: a mistake of the programmer
		}
	}
	return o
}

// Flags returns the flags of all settings, in kube-controller-manager's sections.
// It returns the same flag sets at each call.
func (o *Options) Flags() *cliflag.NamedFlagSets {
	if o.flags.FlagSets != nil {
		return &o.flags
	}
	generic := o.flags.FlagSet("generic")
	o.Generic.addFlags(generic)
	o.Client.addLimitFlags(generic)
	o.LeaderElection.AddFlags(generic)
	o.FeatureGates.AddFlag(generic)
	o.Workers.addFlags(&o.flags)
	o.Server.AddFlags(&o.flags)
	o.Metrics.AddFlags(o.flags.FlagSet("metrics"))
	manager.AddLogFlags(o.Logs, o.flags.FlagSet("logs"))
	o.Client.addAddressFlags(o.flags.FlagSet("misc"))
	verflag.AddFlags(o.flags.FlagSet("global"))
	globalflag.AddGlobalFlags(o.flags.FlagSet("global"), ComponentName, logs.SkipLoggingConfigurationFlags())
	o.Generic.controllers.AddFlags(&o.flags)
	return &o.flags
}

// Validate returns all that is wrong, nil if nothing is.
func (o *Options) Validate() error {
	var mistakes Mistakes
	mistakes = append(mistakes, o.Generic.validate()...)
	mistakes = append(mistakes, o.Client.validate()...)
	mistakes = append(mistakes, o.LeaderElection.Validate()...)
	mistakes = append(mistakes, o.Workers.validate()...)
	mistakes = append(mistakes, o.Generic.controllers.Validate()...)
	mistakes = append(mistakes, o.Server.Validate()...)
	mistakes = append(mistakes, o.validateMetrics()...)
	mistakes = append(mistakes, manager.ValidateLogs(o.Logs, o.FeatureGates)...)
	return mistakes.asError()
}
