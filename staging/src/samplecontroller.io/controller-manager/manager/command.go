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
	"samplecontroller.io/controller-manager/leadership"
)

// Build makes what the program hosts: its informers and the enabled controllers, from
// clients that it makes from configs. It starts nothing.
type Build func(ctx context.Context, configs Configs, enabled []string) (*informers.Handle, []controller.Controller, error)

// Configs say how to reach the API server. What clients of either write passes only while
// the process leads.
type Configs struct {
	// Informers is for the clients that informers read from: watches have no timeout.
	Informers *restclient.Config
	// Controllers is for the clients of controllers. Each request ends after
	// --write-timeout, with all that client-go does when the API server asks it to retry
	// later. A watch would end as soon.
	Controllers *restclient.Config
}

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
	defer FlushLogs()
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
	if c.Informers, c.Controllers, err = build(ctx, o.configs(config, c.Gate), enabled); err != nil {
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

// configs returns what build is given to reach the API server.
func (o *Options) configs(config *restclient.Config, gate *leadership.Gate) Configs {
	configs := Configs{Informers: restclient.CopyConfig(config)}
	configs.Informers.Wrap(gate.Wrap)
	configs.Controllers = restclient.CopyConfig(configs.Informers)
	configs.Controllers.Timeout = o.LeaderElection.WriteTimeout
	return configs
}
