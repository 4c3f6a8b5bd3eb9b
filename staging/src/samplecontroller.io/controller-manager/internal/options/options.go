// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options holds the settings of a controller manager. Each concern has its own file,
// with its flags, their validation and the resulting configuration. All settings are validated
// together, before anything starts.
//
//	o := options.New("example-manager", 10263, registry)
//	flags := pflag.NewFlagSet("example-manager", pflag.ContinueOnError)
//	for _, section := range o.Flags().FlagSets {
//		flags.AddFlagSet(section)
//	}
//	if err := flags.Parse(args); err != nil {
//		return nil, err
//	}
//	if err := o.Validate(); err != nil {
//		return nil, err // it lists all invalid flags
//	}
//	return o.Config(ctx)
//
// Package manager does this for a command.
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

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/leadership"
	internallogs "samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/server"
)

// Options holds all settings of a program.
type Options struct {
	// Name is the name of the program. Its Lease, user agent, certificate and pages have it.
	Name           string
	Generic        *GenericOptions
	Client         *ClientOptions
	LeaderElection *leadership.Options
	Workers        *WorkersOptions
	Server         *server.Options
	Tracing        *TracingOptions
	Metrics        *metrics.Options
	Logs           *logs.Options
	// FeatureGates holds the feature gates of the libraries.
	FeatureGates featuregate.MutableVersionedFeatureGate
	// Controllers is the controller map.
	Controllers *controller.Registry
	// File is the configuration file, nil if there is none. [Options.Complete] sets it.
	File *ConfigFile

	flags cliflag.NamedFlagSets
}

// kubernetesVersion is the minor version of the Kubernetes libraries. It determines the
// defaults of their feature gates.
var kubernetesVersion = version.MustParse("1.37")

// New returns the default options of the named program, which hosts the given controllers and
// serves HTTPS on port. It panics if two libraries have a feature gate of the same name.
func New(name string, port int, controllers *controller.Registry) *Options {
	o := &Options{
		Name:           name,
		Generic:        newGenericOptions(controllers),
		Client:         newClientOptions(),
		LeaderElection: leadership.NewOptions(name),
		Workers:        newWorkersOptions(controllers),
		Server:         server.NewOptions(name, port),
		Tracing:        &TracingOptions{},
		Metrics:        metrics.NewOptions(),
		Logs:           logs.NewOptions(),
		FeatureGates:   featuregate.NewVersionedFeatureGate(kubernetesVersion),
		Controllers:    controllers,
	}
	// k8s.io/apiserver takes the version stamped into the binary for its own. At v0.1 that
	// would disable all of its feature gates.
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(kubernetesVersion); err != nil {
		panic(err) // fails only if it was set before
	}
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{
		logsapi.AddFeatureGates, metricsfeatures.AddFeatureGates, zpagesfeatures.AddFeatureGates,
	} {
		if err := add(o.FeatureGates); err != nil {
			panic(err)
		}
	}
	return o
}

// Flags returns the flags of all settings, in kube-controller-manager's sections. The flags of
// each controller are in a section named after it. Each call returns the same flag sets.
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
	o.Tracing.addFlags(o.flags.FlagSet("traces"))
	internallogs.AddFlags(o.Logs, o.flags.FlagSet("logs"))
	o.Client.addAddressFlags(o.flags.FlagSet("misc"))
	verflag.AddFlags(o.flags.FlagSet("global"))
	globalflag.AddGlobalFlags(o.flags.FlagSet("global"), o.Name, logs.SkipLoggingConfigurationFlags())
	o.Controllers.AddFlags(&o.flags)
	return &o.flags
}

// Validate returns all invalid settings as one [InvalidFlags] error, or nil.
func (o *Options) Validate() error {
	var invalid InvalidFlags
	invalid = append(invalid, o.Generic.validate()...)
	invalid = append(invalid, o.Client.validate()...)
	invalid = append(invalid, o.LeaderElection.Validate()...)
	invalid = append(invalid, o.Workers.validate()...)
	invalid = append(invalid, o.Controllers.Validate()...)
	invalid = append(invalid, o.Server.Validate()...)
	invalid = append(invalid, o.validateMetrics()...)
	invalid = append(invalid, internallogs.Validate(o.Logs, o.FeatureGates)...)
	return invalid.asError()
}
