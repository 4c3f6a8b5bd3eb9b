// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newLogsCommand returns the verb that prints the log of the leader.
func newLogsCommand() *cobra.Command {
	v, l := &verb{}, cluster.Log{}
	command := &cobra.Command{
		Use:   "logs",
		Short: "Print the leader's log; with --follow, across handovers.",
		Long: `Print the leader's log. With --follow it goes on with the log of the next leader when
another replica takes the Lease, and says so on the standard error.

You need the right to get pods/log in the daemon's namespace, which the Role
` + cluster.Daemon + `-status-reader has.`,
		Example: `  kubectl scm logs --since=1h
  kubectl scm logs -f --tail=20`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(v.validate(), v.withoutNamespace()); err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			return v.logs(cmd.Context(), c, l, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	v.addFlags(command)
	command.Flags().BoolVarP(&l.Follow, "follow", "f", false, "Go on as the log grows, until interrupted.")
	command.Flags().DurationVar(&l.Since, "since", 0, "Only lines of the last such time, for example 1h. All by default.")
	command.Flags().Int64Var(&l.Tail, "tail", -1, "Only this many of the last lines. All by default.")
	return command
}

// logs prints the log of the leader, and of the next ones if it is to be followed.
func (v *verb) logs(ctx context.Context, c *cluster.Cluster, l cluster.Log, out, progress io.Writer) error {
	lead, err := v.lead(ctx, c)
	if err != nil {
		return err
	}
	for {
		fmt.Fprintf(progress, "Log of Pod %s/%s\n", v.DaemonNamespace, lead.Pod)
		until, stop := context.WithCancel(ctx)
		if l.Follow {
			go func() {
				defer stop()
				v.awaitLead(until, c, lead.Holder)
			}()
		}
		err := c.CopyLog(until, lead.Pod, l, out)
		stop()
		if ctx.Err() != nil {
			return nil // interrupted
		}
		if err != nil || !l.Follow {
			return err
		}
		// The log has ended or broken off, or another replica leads.
		ended := time.Now()
		next := v.awaitLead(ctx, c, "")
		l.Tail, l.Since = -1, time.Since(ended)
		if next.Holder != lead.Holder {
			l.Since = time.Since(next.Since) + time.Second
		}
		lead = next
	}
}

// lead returns who leads.
func (v *verb) lead(ctx context.Context, c *cluster.Cluster) (cluster.Lead, error) {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	lead, err := c.Lead(ctx)
	if err == nil && (lead.Holder == "" || lead.Expired(time.Now())) {
		err = errors.New("nobody leads; kubectl logs prints the log of another replica")
	}
	return lead, withCause(ctx, err)
}

// awaitLead returns who leads as soon as it is not the former holder, or when ctx ends. It does not end with an error:
// the API server may be away for a while.
func (v *verb) awaitLead(ctx context.Context, c *cluster.Cluster, former string) cluster.Lead {
	for {
		select {
		case <-ctx.Done():
			return cluster.Lead{}
		case <-time.After(interval):
		}
		if lead, err := v.lead(ctx, c); err == nil && lead.Holder != former {
			return lead
		}
	}
}
