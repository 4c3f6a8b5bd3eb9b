// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/informers"
)

// Build makes what the program hosts: its informers and the enabled controllers.
// config says how to reach the API server; what its clients write passes only while
// the process leads. It starts nothing.
type Build func(ctx context.Context, config *restclient.Config, enabled []string) (*informers.Handle, []controller.Controller, error)

// NewCommand returns the command of a program whose settings are o. It runs what
// build makes until it is told to end, by SIGINT, SIGTERM or its context. A second
// signal ends it at once.
func NewCommand(o *Options, build Build) *cobra.Command {
	command := &cobra.Command{
		Use:  o.Name,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// Then nobody catches the second signal.
			defer context.AfterFunc(ctx, stop)()
			return o.run(ctx, build)
		},
		// A mistake is reported alone: the usage, a hundred lines long, would hide it.
		SilenceUsage: true,
	}
	var sections cliflag.NamedFlagSets
	o.AddFlags(&sections)
	for _, flags := range sections.FlagSets {
		command.Flags().AddFlagSet(flags)
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sections, columns)
	return command
}

// run makes all that the options ask for, then runs it.
func (o *Options) run(ctx context.Context, build Build) error {
	if err := NoticeDeadConnections(); err != nil {
		return err
	}
	FollowClientCertificates()
	if errs := o.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	if err := ApplyLogs(ctx, o.Logs, nil); err != nil {
		return err
	}
	enabled, err := o.registry.Enabled(o.Selection)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	if err := FollowCredentials(config); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness decides
	c := Config{Supervision: o.Supervision, Gate: o.LeaderElection.Gate(nil), WarmStandby: o.WarmStandby}
	if c.Election, err = o.LeaderElection.Election(config, c.Gate, nil, nil); err != nil {
		return err
	}
	gated := restclient.CopyConfig(config)
	gated.Wrap(c.Gate.Wrap)
	if c.Informers, c.Controllers, err = build(ctx, gated, enabled); err != nil {
		return err
	}
	if c.Server, err = o.Server.Config(ctx, o.Kubeconfig); err != nil {
		if ctx.Err() != nil {
			return nil // told to end before
		}
		return err
	}
	return Run(ctx, c)
}
