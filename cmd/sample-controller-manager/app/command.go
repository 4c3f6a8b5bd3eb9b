// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app wires the daemon together: flags become options, options a config,
// a config a running process. It holds no logic of its own. The controller map is
// in descriptors.go, the order of start and stop in run.go.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

// errLogged stands for an error that has been logged where it occurred.
var errLogged = errors.New("already logged")

// Execute runs the command of a daemon that hosts the registered controllers, with the
// given arguments, until it is done or ctx ends. It returns the exit code: 0, or 1 after
// an error that it has reported.
func Execute(ctx context.Context, registry *controller.Registry[*ControllerContext], args []string) int {
	command := NewCommand(registry, options.NewOptions(registry))
	command.SetArgs(args)
	command.SetContext(ctx)
	err := cli.RunNoErrOutput(command)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errLogged) {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
	}
	return 1
}

// NewCommand returns the command of a daemon that hosts the registered controllers. It
// parses its arguments into the options. Its context must be set.
func NewCommand(registry *controller.Registry[*ControllerContext], o *options.Options) *cobra.Command {
	command := &cobra.Command{
		Use: options.ComponentName,
		Long: `The sample controller manager is a daemon that hosts several controllers in one
process: they share one set of informers and run while the process leads.
It keeps the Deployments of the custom resources Foo and Icecream.

"sample-controller-manager controllers" prints the controllers that --controllers
selects from.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := manager.NoticeDeadConnections(); err != nil {
				return err
			}
			manager.FollowClientCertificates()
			if err := o.Validate(); err != nil {
				return err
			}
			// Before anything else may log, or make a client, which logs its requests if
			// that was wanted when it was made.
			if err := manager.ApplyLogs(cmd.Context(), o.Logs, o.FeatureGates); err != nil {
				return err
			}
			defer manager.FlushLogs()
			config, err := o.Config(cmd.Context())
			if err != nil {
				if cmd.Context().Err() != nil {
					return nil // told to end before
				}
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			if err := Run(cmd.Context(), registry, config.Complete()); err != nil {
				klog.FromContext(cmd.Context()).Error(err, "The controller manager ends with an error")
				return errLogged
			}
			return nil
		},
		// A mistake is reported alone: the usage, a hundred lines long, would hide it.
		SilenceUsage: true,
	}
	command.SetFlagErrorFunc(flagError)
	command.AddCommand(newControllersCommand(registry), newStatusCommand(registry))
	command.CompletionOptions.DisableDefaultCmd = true

	flagSets := o.Flags()
	for _, name := range flagSets.Order {
		command.Flags().AddFlagSet(flagSets.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, *flagSets, columns)
	logs.AddFlags(command.Flags(), logs.SkipLoggingConfigurationFlags())
	return command
}

// noArguments refuses positional arguments: what looks like one is usually a flag
// with a dash too few, or a value with a space too many.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q takes no arguments, got %q; flags begin with two dashes, see %s --help", cmd.CommandPath(), args, cmd.CommandPath())
}

// flagError explains a flag that cannot be parsed.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		// -kubeconfig, as sample-controller takes it, is a row of one-letter flags here.
		if name, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "="); len(name) > 1 && cmd.Flags().Lookup(name) != nil {
			return fmt.Errorf("unknown flag -%s: write it with two dashes, --%s", name, name)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
