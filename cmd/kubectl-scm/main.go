// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-scm is a kubectl plugin for operators of the sample-controller-manager.
// "kubectl scm status" prints what the controllers of a replica are doing.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the same credential plugins as kubectl
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

const (
	// daemon is the name of the program, of its Lease and by default of its namespace.
	daemon = "sample-controller-manager"
	// reader is the name of a ServiceAccount that can read the status of replicas, and of
	// the Role that lets operators request its token.
	reader = daemon + "-status-reader"
	// port is where a replica serves HTTPS.
	port = 10261
)

func main() {
	klog.EnableContextualLogging(true) // so that a failed port-forward is reported once, by the command
	if newCommand().Execute() != nil {
		os.Exit(1)
	}
}

// newCommand returns the command, which prints its own errors.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:          "kubectl-scm",
		Short:        "Inspect the sample-controller-manager.",
		Version:      version.Get().GitVersion,
		SilenceUsage: true,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl scm"},
	}
	command.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	command.AddCommand(newStatusCommand(), &cobra.Command{
		Use: "version", Short: "Print the version.", Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), cmd.Parent().CommandPath(), "version", cmd.Parent().Version)
		},
	})
	return command
}
