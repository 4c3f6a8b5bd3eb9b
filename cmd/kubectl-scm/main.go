// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-scm is a kubectl plugin for operators of the sample-controller-manager. Each verb has a file here.
// Package cluster reads what they show.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the same credential plugins as kubectl
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

func main() {
	klog.EnableContextualLogging(true) // so that a failed port-forward is reported once, by the command
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if newCommand().ExecuteContext(ctx) != nil {
		stop()
		os.Exit(1)
	}
}

// newCommand returns the command, which prints its own errors.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:          "kubectl-scm",
		Short:        "Operate the sample-controller-manager.",
		Version:      version.Get().GitVersion,
		SilenceUsage: true,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl scm"},
	}
	command.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	command.AddCommand(newStatusCommand(), newWhyCommand(), newObjectsCommand(), newPauseCommand(), newResumeCommand(),
		newLeaderCommand(), newLogsCommand(), newLogLevelCommand(), newAllowDeletionsCommand(), newPreflightCommand(),
		newDashboardCommand(), &cobra.Command{
			Use: "version", Short: "Print the version.", Args: cobra.NoArgs,
			Run: func(cmd *cobra.Command, _ []string) {
				fmt.Fprintln(cmd.OutOrStdout(), cmd.Parent().CommandPath(), "version", cmd.Parent().Version)
			},
		})
	return command
}
