// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newPreflightCommand returns the verb that checks in a replica's Pod that the daemon can run.
func newPreflightCommand() *cobra.Command {
	v := &verb{}
	command := &cobra.Command{
		Use:   "preflight [-- flag...]",
		Short: "Check in a replica's Pod that the daemon has all that it needs.",
		Long: `Check in a replica's Pod that the daemon has all that it needs: permissions, APIs, the
Lease. It runs "` + cluster.Daemon + ` preflight" there with the flags of
the Pod, so with its ServiceAccount and its network. Flags after -- are added.

It runs in the leader's Pod, or else in one that is ready, or in the one that --pod
names. You need the right to create pods/exec in the daemon's namespace. Before
there is a Pod, run the Job of manifests/docs/preflight.md.`,
		Example: `  kubectl scm preflight
  kubectl scm preflight -- --namespace=team-a`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(v.validate(), v.withoutNamespace()); err != nil {
				return err
			}
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return errors.New("the flags of the daemon come after --, for example: kubectl scm preflight -- --namespace=team-a")
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			ctx, cancel := v.bounded(cmd.Context())
			defer cancel()
			checks, err := c.Preflight(ctx, args, cmd.ErrOrStderr())
			if err != nil {
				return withCause(ctx, err)
			}
			return v.printChecks(cmd.OutOrStdout(), checks)
		},
	}
	v.addFlags(command)
	command.Flags().StringVar(&v.Pod, "pod", "", "Pod to run it in.")
	v.addOutputFlag(command)
	return command
}

// printChecks prints the results. It returns an error if a check failed.
func (v *verb) printChecks(w io.Writer, checks cluster.Checks) error {
	count := map[string]int{}
	for _, check := range checks.Checks {
		count[check.Result]++
	}
	if v.output == "json" {
		if err := printJSON(w, checks); err != nil {
			return err
		}
	} else {
		w = newPainter(w)
		for _, check := range checks.Checks {
			fmt.Fprintf(w, "%-4s  %s\n", check.Result, check.Check)
			debug.PrintWrapped(w, "      ", check.Details)
		}
		fmt.Fprintf(w, "\nFailed: %d. Warnings: %d. Skipped: %d.\n", count["FAIL"], count["WARN"], count["SKIP"])
	}
	if count["FAIL"] > 0 {
		return fmt.Errorf("%d checks failed: see manifests/docs/preflight.md", count["FAIL"])
	}
	return nil
}
