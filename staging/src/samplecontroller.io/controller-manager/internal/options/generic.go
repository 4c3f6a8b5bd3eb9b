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
	"samplecontroller.io/controller-manager/internal/live"
)

// GenericOptions selects the controllers, and configures how they run, start and stop.
type GenericOptions struct {
	// Selection is the value of --controllers. It can change while the process runs.
	Selection *live.Value[[]string]
	// ConfigFile is the path of the configuration file; empty means none.
	ConfigFile string
	// PausedControllers is the value of --paused-controllers. It can change while the process runs.
	PausedControllers *live.Value[Pauses]
	// Namespace is the only namespace to serve; empty means all.
	Namespace string
	// UseServiceAccountCredentials makes each controller write as a ServiceAccount of its own.
	UseServiceAccountCredentials bool
	// SyncTimeout is how long the sync of one object may take.
	SyncTimeout time.Duration
	// MaxDeletionsPerMinute is how many objects each controller may delete within a minute; 0: no limit.
	MaxDeletionsPerMinute *live.Value[int]
	// WarmStandby makes a process campaign only after its caches are filled.
	WarmStandby bool
	// Shadow makes a process that never leads, and whose writes are all dry runs.
	Shadow bool
	// ControllerShutdownTimeout is how long to wait for the controllers to stop.
	ControllerShutdownTimeout time.Duration

	registry *controller.Registry
}

func newGenericOptions(registry *controller.Registry) *GenericOptions {
	return &GenericOptions{
		Selection:                 live.New(live.Strings(), []string{"*"}, enables(registry)),
		PausedControllers:         newPauses(registry),
		MaxDeletionsPerMinute:     live.New(live.Int(), 0, notNegative),
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
	fs.Var(o.Selection, "controllers", "A list of controllers to enable. "+
		"'*' enables all on-by-default controllers, 'foo' enables the controller named 'foo', '-foo' disables the controller named 'foo'. "+
		"Enabling and disabling the same controller is an error.\n"+
		"All controllers: "+strings.Join(o.registry.Names(), ", ")+"\nDisabled-by-default controllers: "+disabled)
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile,
		"Path of a file with values of flags. Flags that are given on the command line win. The file is read again when it changes: "+
			"the log verbosity, the controllers to enable or to pause, their numbers of syncs, intervals and deletions change while the process runs; a change of others is refused.")
	o.addPauseFlag(fs)
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"The only namespace to serve. Other namespaces are not read, and no permissions are needed there. If empty, all namespaces are served.")
	fs.BoolVar(&o.UseServiceAccountCredentials, "use-service-account-credentials", o.UseServiceAccountCredentials,
		"If true, each controller writes with the credentials of its own ServiceAccount, named <program's ServiceAccount>-<controller>, in the same namespace. The ServiceAccounts must already exist. Reads, Events and the Lease use the program's own credentials.")
	fs.DurationVar(&o.SyncTimeout, "sync-timeout", o.SyncTimeout, "How long the sync of one object may take before it is canceled and retried with backoff.")
	fs.Var(o.MaxDeletionsPerMinute, "max-deletions-per-minute",
		"How many objects each controller may delete within a minute. A controller that wants to delete more deletes nothing until no object needs that any more, or an operator lets it go on by a PUT of /debug/deletions/<controller>. Everything else goes on. 0 means no limit.")
	fs.BoolVar(&o.WarmStandby, "warm-standby", o.WarmStandby,
		"Campaign only after the caches are filled, so that a new leader can start work at once. A cache that waits for an API, a permission or the repair of a resource does not delay the campaign.")
	fs.BoolVar(&o.Shadow, "shadow", o.Shadow,
		"Run beside the leader, never campaign, and send each write as a dry run. A write that the shadow still wants after 10 s, because the leader has not made it, is a difference, also if the API server refuses it, unless the status says so: see /debug/controllers and the metric shadow_differences. Use it to try a new version or new flags.")
	fs.DurationVar(&o.ControllerShutdownTimeout, "controller-shutdown-timeout", o.ControllerShutdownTimeout,
		"How long to wait for the controllers to finish their current syncs. After that the process exits without releasing the Lease. 0 means no limit. "+
			"At the end no write takes longer than --write-timeout, so a sync, which may take --sync-timeout, exceeds this only if it waits for something else.")
	addDeprecatedFlags(fs)
}

// addDeprecatedFlags adds flags that have no effect. They are accepted for two minor versions, so
// that a command line that has them does not stop a process from starting: see
// manifests/docs/policies.md.
func addDeprecatedFlags(fs *pflag.FlagSet) {
	const removed = "it has no effect, and is removed in v0.4.0"
	for name, why := range map[string]string{
		"min-resync-period":         "controllers watch everything that they need",
		"controller-start-interval": "all controllers start at once",
	} {
		fs.Duration(name, 0, "Has no effect.")
		if err := fs.MarkDeprecated(name, removed+": "+why); err != nil {
			panic(err) // fails only for a flag that does not exist
		}
	}
}

func (o *GenericOptions) validate() []error {
	var errs []error
	errs = append(errs, named("--controllers", o.Selection.Check())...)
	errs = append(errs, named("--paused-controllers", o.PausedControllers.Check())...)
	errs = append(errs, validateNamespace(o.Namespace)...)
	errs = append(errs, named("--max-deletions-per-minute", o.MaxDeletionsPerMinute.Check())...)
	errs = append(errs, controller.CheckDuration("sync-timeout", o.SyncTimeout, time.Second)...)
	errs = append(errs, controller.CheckDuration("controller-shutdown-timeout", o.ControllerShutdownTimeout, 0)...)
	return errs
}

// validateNamespace checks --namespace. Its errors cover values that similar flags of other
// programs accept.
func validateNamespace(namespace string) []error {
	switch {
	case namespace == "":
		return nil
	case namespace == "*":
		return []error{errors.New("--namespace: * is not supported; leave it empty for all namespaces")}
	case strings.ContainsAny(namespace, ", "):
		return []error{fmt.Errorf("--namespace: %q is more than one namespace: use one, or leave it empty for all; for several, run one process per namespace", namespace)}
	}
	if why := validation.IsDNS1123Label(namespace); len(why) > 0 {
		return []error{fmt.Errorf("--namespace: %q is not a valid namespace name: %s", namespace, strings.Join(why, "; "))}
	}
	return nil
}

// enables returns a check of --controllers.
func enables(registry *controller.Registry) func([]string) error {
	return func(selection []string) error {
		_, err := registry.Enabled(selection)
		return err
	}
}

func notNegative(limit int) error {
	if limit < 0 {
		return fmt.Errorf("%d must not be negative; 0 means no limit", limit)
	}
	return nil
}

// named returns each error that err aggregates, with the name of its flag; none if err is nil.
func named(flag string, err error) (errs []error) {
	if err == nil {
		return nil
	}
	for _, err := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s: %w", flag, err))
	}
	return errs
}

// flatten returns the errors that err aggregates.
func flatten(err error) []error {
	if aggregate, ok := err.(utilerrors.Aggregate); ok {
		return utilerrors.Flatten(aggregate).Errors()
	}
	return []error{err}
}
