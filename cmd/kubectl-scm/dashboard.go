// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/dashboard"
)

// newDashboardCommand returns the verb that serves a web page on this machine.
func newDashboardCommand() *cobra.Command {
	v, port := &verb{}, 0
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a local web page: the leader, the controllers, the objects that are not Ready.",
		Long: `Serve a web page on this machine: the leader and those before it, the controllers,
the objects that are not Ready, and why they are not.

It reads with your own credentials and installs nothing in the cluster. Rights that
you do not have cost you only the parts of the page that need them. The leader's Pod
answers, as for status. --namespace limits the objects to those of one namespace.

Only this machine can open the page, and only with the printed address, which has a
random token. Keep the address to yourself. Interrupt the command to end it.`,
		Example: `  kubectl scm dashboard
  kubectl scm dashboard --port=8080
  kubectl scm dashboard -n shop`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.validate(); err != nil {
				return err
			}
			if port < 0 || port > 65535 {
				return fmt.Errorf("invalid --port %d: must be a port, or 0 for any free one", port)
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			options := dashboard.Options{Namespace: v.GivenNamespace(), Timeout: v.timeout}
			d := dashboard.New(dashboard.Cluster{Cluster: c}, options)
			server, err := dashboard.Listen(d, port)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Dashboard: %s\n", server.URL())
			ctx, cancel := context.WithCancel(cmd.Context())
			read := make(chan struct{})
			go func() {
				defer close(read)
				d.Run(ctx)
			}()
			err = server.Serve(ctx)
			cancel()
			<-read
			return err
		},
	}
	v.addFlags(command)
	v.AddStatusFlags(command.Flags())
	command.Flags().IntVar(&port, "port", 0, "Port of this machine to serve on. 0 means any free port.")
	return command
}
