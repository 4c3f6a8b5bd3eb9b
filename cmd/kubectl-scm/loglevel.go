// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newLogLevelCommand returns the verb that sets the log verbosity of a replica.
func newLogLevelCommand() *cobra.Command {
	v := &verb{}
	command := &cobra.Command{
		Use:   "log-level verbosity",
		Short: "Set the log verbosity of the leader.",
		Long: `Set the log verbosity of the leader: 0 to 7, where 2 is for production, 4 shows each
sync, and 6 and 7 show requests of a daemon that was started with --v=6. It lasts until
the restart of the leader, or until v changes in its --config file.

The replica gets a token of the ServiceAccount ` + cluster.Daemon + `-log-level,
which is valid for 10 minutes and may do nothing else. To request it you need the
Role of the same name in the daemon's namespace, beside that of the status reader.`,
		Example: `  kubectl scm log-level 4
  kubectl scm log-level 2 --pod=` + cluster.Daemon + `-7d9f8b6c5-abcde`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions([]string{"0", "1", "2", "3", "4", "5", "6", "7"},
			cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(v.validate(), v.withoutNamespace()); err != nil {
				return err
			}
			if level, err := strconv.Atoi(args[0]); err != nil || level < 0 {
				return fmt.Errorf("invalid verbosity %q: must be a number from 0 to 7", args[0])
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			return v.ask(cmd.Context(), c, cmd.ErrOrStderr(), func(ctx context.Context, replica *cluster.Replica) error {
				answer, err := replica.SetVerbosity(ctx, args[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), answer)
				return nil
			})
		},
	}
	v.addFlags(command)
	v.AddLevelFlags(command.Flags())
	return command
}
