// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"samplecontroller.io/controller-manager/controller"
)

// GenericOptions say which controllers run and how they are started and stopped.
type GenericOptions struct {
	// Selection is the value of --controllers.
	Selection []string
	// Namespace is the one to serve, empty for all.
	Namespace string
	// MinResyncPeriod of the informers; 0: no resync.
	MinResyncPeriod time.Duration
	// ControllerStartInterval is how long to wait before each controller.
	ControllerStartInterval time.Duration
	// SyncTimeout is how long the sync of one object may take.
	SyncTimeout time.Duration
	// WarmStandby makes a process campaign only when its caches are filled.
	WarmStandby bool
	// ControllerShutdownTimeout is how long to wait for controllers to stop.
	ControllerShutdownTimeout time.Duration

	registry *controller.Registry
}

func newGenericOptions(registry *controller.Registry) *GenericOptions {
	return &GenericOptions{
		Selection:                 []string{"*"},
		ControllerShutdownTimeout: 10 * time.Second,
		SyncTimeout:               30 * time.Second,
		WarmStandby:               true,
		registry:                  registry,
	}
}

func (o *GenericOptions) addFlags(fs *pflag.FlagSet) {
	disabled := "none"
	if names := o.registry.DisabledByDefault(); len(names) > 0 {
		disabled = strings.Join(names, ", ")
	}
	fs.StringSliceVar(&o.Selection, "controllers", o.Selection, "A list of controllers to enable. "+
		"'*' enables all on-by-default controllers, 'foo' enables the controller named 'foo', '-foo' disables the controller named 'foo'. "+
		"The first item that names a controller decides.\n"+
		"All controllers: "+strings.Join(o.registry.Names(), ", ")+"\nDisabled-by-default controllers: "+disabled)
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"The one namespace to serve: no other is looked at, and no permission in another is needed. Empty: all namespaces.")
	fs.DurationVar(&o.MinResyncPeriod, "min-resync-period", o.MinResyncPeriod,
		"The resync period in reflectors will be random between MinResyncPeriod and 2*MinResyncPeriod. 0 means no resync: what the controllers own is watched.")
	fs.DurationVar(&o.SyncTimeout, "sync-timeout", o.SyncTimeout, "Time that the sync of one object may take before it is given up and tried again with backoff.")
	fs.BoolVar(&o.WarmStandby, "warm-standby", o.WarmStandby,
		"Campaign only when the caches are filled, or known to wait for an API, for permission or for the repair of a resource, so that a replica that takes over can begin at once.")
	fs.DurationVar(&o.ControllerStartInterval, "controller-start-interval", o.ControllerStartInterval, "Interval between starting controllers.")
	fs.DurationVar(&o.ControllerShutdownTimeout, "controller-shutdown-timeout", o.ControllerShutdownTimeout,
		"Time to wait for the controllers to finish what they are doing before the process exits without releasing the lease. 0 means to wait for as long as it takes.")
}

func (o *GenericOptions) validate() []error {
	var errs []error
	if _, err := o.registry.Enabled(o.Selection); err != nil {
		for _, err := range flatten(err) {
			errs = append(errs, fmt.Errorf("--controllers: %w", err))
		}
	}
	errs = append(errs, validateNamespace(o.Namespace)...)
	errs = append(errs, controller.CheckDuration("min-resync-period", o.MinResyncPeriod, 0)...)
	errs = append(errs, controller.CheckDuration("controller-start-interval", o.ControllerStartInterval, 0)...)
	errs = append(errs, controller.CheckDuration("sync-timeout", o.SyncTimeout, time.Second)...)
	errs = append(errs, controller.CheckDuration("controller-shutdown-timeout", o.ControllerShutdownTimeout, 0)...)
	return errs
}

// validateNamespace checks the value of --namespace, of which people expect what similar
// flags of other programs take.
func validateNamespace(namespace string) []error {
	switch {
	case namespace == "":
		return nil
	case namespace == "*":
		return []error{errors.New("--namespace: write nothing for all namespaces, rather than *")}
	case strings.ContainsAny(namespace, ", "):
		return []error{fmt.Errorf("--namespace: %q is more than one: write one, or nothing for all; for some of them, run a daemon for each", namespace)}
	}
	if why := validation.IsDNS1123Label(namespace); len(why) > 0 {
		return []error{fmt.Errorf("--namespace: %q cannot be the name of a namespace: %s", namespace, strings.Join(why, "; "))}
	}
	return nil
}

// flatten returns the errors that err is made of.
func flatten(err error) []error {
	if aggregate, ok := err.(utilerrors.Aggregate); ok {
		return utilerrors.Flatten(aggregate).Errors()
	}
	return []error{err}
}
