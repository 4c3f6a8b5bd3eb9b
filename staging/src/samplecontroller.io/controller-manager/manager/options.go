// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"time"

	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/server"
	"samplecontroller.io/controller-manager/supervisor"
)

// Registry is what the options need to know of a [controller.Registry].
type Registry interface {
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
}

// Options are the settings that every controller manager has, named as in
// kube-controller-manager.
type Options struct {
	// Name of the program: of its command, its Lease and its certificate.
	Name string
	// Kubeconfig is the file that says how to reach the API server; empty: the
	// credentials that a Pod is given.
	Kubeconfig string
	// Selection of controllers, as [controller.Registry.Enabled] takes it.
	Selection []string
	// Supervision says how controllers are started and stopped; it has no flags.
	Supervision supervisor.Options
	// LeaderElection says whether and how to campaign.
	LeaderElection *leadership.Options
	// WarmStandby is [Config.WarmStandby]; it has no flag.
	WarmStandby bool
	// Server says what to serve to whom.
	Server *server.Options
	// Logs says what is logged, and how.
	Logs *logs.Options

	registry Registry
}

// NewOptions returns the defaults for a program of the given name, which hosts
// the controllers of registry and serves on the given port.
func NewOptions(name string, port int, registry Registry) *Options {
	return &Options{
		Name:           name,
		Selection:      []string{"*"},
		Supervision:    supervisor.Options{ShutdownTimeout: 10 * time.Second},
		LeaderElection: leadership.NewOptions(name),
		WarmStandby:    true,
		Server:         server.NewOptions(name, port),
		Logs:           logs.NewOptions(),
		registry:       registry,
	}
}

// AddFlags adds the flags in kube-controller-manager's sections.
func (o *Options) AddFlags(sections *cliflag.NamedFlagSets) {
	generic := sections.FlagSet("generic")
	generic.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Path to kubeconfig file with authorization and master location information. Empty: the credentials that a Pod is given.")
	disabled := "none"
	if names := o.registry.DisabledByDefault(); len(names) > 0 {
		disabled = strings.Join(names, ", ")
	}
	generic.StringSliceVar(&o.Selection, "controllers", o.Selection, "A list of controllers to enable. "+
		"'*' enables all on-by-default controllers, 'foo' enables the controller named 'foo', '-foo' disables the controller named 'foo'. "+
		"The first item that names a controller decides.\n"+
		"All controllers: "+strings.Join(o.registry.Names(), ", ")+"\nDisabled-by-default controllers: "+disabled)
	o.LeaderElection.AddFlags(sections.FlagSet("leader election"))
	o.Server.AddFlags(sections)
	AddLogFlags(o.Logs, sections.FlagSet("logs"))
	o.registry.AddFlags(sections)
}

// Validate returns all that is wrong.
func (o *Options) Validate() []error {
	var errs []error
	if _, err := o.registry.Enabled(o.Selection); err != nil {
		errs = append(errs, fmt.Errorf("--controllers: %w", err))
	}
	errs = append(errs, o.LeaderElection.Validate()...)
	errs = append(errs, o.registry.Validate()...)
	errs = append(errs, o.Server.Validate()...)
	return append(errs, ValidateLogs(o.Logs, nil)...)
}
