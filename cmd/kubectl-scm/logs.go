// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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
	for said := ""; ; {
		if lead.Pod != said {
			fmt.Fprintf(progress, "Log of Pod %s/%s\n", v.DaemonNamespace, lead.Pod)
		}
		err := v.copyLog(ctx, c, lead, l, out)
		if ctx.Err() != nil {
			return nil // interrupted
		}
		// Later, a Pod may be gone before another one leads.
		if !l.Follow || err != nil && said == "" {
			return err
		}
		// The log has ended or broken off, or another replica leads.
		said = lead.Pod
		ended := time.Now()
		next := v.awaitLead(ctx, c, "")
		if ctx.Err() != nil {
			return nil
		}
		l.Tail, l.Since = -1, time.Since(ended)
		if next.Holder != lead.Holder {
			l.Since = time.Since(next.Since) + time.Second
		}
		lead = next
	}
}

// copyLog copies the log of the leader. If it is to be followed, it ends when another replica leads.
func (v *verb) copyLog(ctx context.Context, c *cluster.Cluster, lead cluster.Lead, l cluster.Log, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	if l.Follow {
		waiting.Go(func() {
			defer stop()
			v.awaitLead(ctx, c, lead.Holder)
		})
	}
	return c.CopyLog(ctx, lead.Pod, l, out)
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

// awaitLead waits until another than the former holder leads, or until ctx ends. An error does not end it:
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
