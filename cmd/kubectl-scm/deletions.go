// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newAllowDeletionsCommand returns the verb that lets a controller delete more than its budget.
func newAllowDeletionsCommand() *cobra.Command {
	v := &verb{}
	command := &cobra.Command{
		Use:   "allow-deletions controller",
		Short: "Let a controller of the leader delete without a limit for 10 minutes.",
		Long: `Let a controller of the leader delete without a limit for 10 minutes. Use it for a controller
whose deletions are stopped, because it wanted to delete more objects within a minute
than --max-deletions-per-minute allows. First find out whether it should delete them:
'kubectl scm status' shows why it is Degraded.

The leader gets a token of the ServiceAccount ` + cluster.Daemon + `-allow-deletions,
which is valid for 10 minutes and may do nothing else. To request it you need the
Role of the same name in the daemon's namespace, beside that of the status reader.`,
		Example:           `  kubectl scm allow-deletions foo-controller`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeControllers(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(v.validate(), v.withoutNamespace()); err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			return v.ask(cmd.Context(), c, cmd.ErrOrStderr(), func(ctx context.Context, replica *cluster.Replica) error {
				answer, err := replica.AllowDeletions(ctx, args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), answer)
				return nil
			})
		},
	}
	v.addFlags(command)
	v.AddDeletionFlags(command.Flags())
	return command
}
