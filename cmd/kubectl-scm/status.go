// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// interval is how often a watch reads again.
const interval = 2 * time.Second

// newStatusCommand returns the verb that prints what the controllers of a replica are doing.
func newStatusCommand() *cobra.Command {
	v, watch := &verb{}, false
	command := &cobra.Command{
		Use:   "status [controller]",
		Short: "Print who leads, what is wrong and what the controllers do.",
		Long: `Print who leads, what is wrong and what the controllers do: all of them, or one with
its last syncs.

The leader's Pod answers, through a port-forward. --pod selects another replica,
--server another address. Your own credentials go only to the API server. The
replica gets a token of the ServiceAccount ` + cluster.Daemon + `-status-reader,
which is valid for 10 minutes and may only read the status. To request it you need
the Role of the same name in the daemon's namespace.`,
		Example: `  kubectl scm status
  kubectl scm status foo
  kubectl scm status --watch
  kubectl scm status --server=https://127.0.0.1:10261 --insecure-skip-tls-verify`,
		Args:              atMostOneController,
		ValidArgsFunction: completeControllers(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.validate(); err != nil {
				return err
			}
			if err := v.withoutNamespace(); err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			controller := strings.Join(args, "")
			if watch {
				return v.watchStatus(cmd, c, controller)
			}
			return v.status(cmd.Context(), c, controller, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	v.addFlags(command)
	v.AddStatusFlags(command.Flags())
	v.addOutputFlag(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Print it again every 2 seconds, until interrupted.")
	return command
}

// atMostOneController rejects more arguments than a controller.
func atMostOneController(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 2:
		return fmt.Errorf("status prints controllers; for one object use: kubectl scm why %s %s", args[0], args[1])
	case len(args) > 2:
		return fmt.Errorf("too many arguments %q; usage: status [controller]", args[1:])
	case len(args) == 1 && (args[0] == "" || strings.Contains(args[0], "/")):
		return fmt.Errorf("%q is not a controller; usage: status [controller]", args[0])
	}
	return nil
}

// overview is the JSON form of a status.
type overview struct {
	debug.Report
	Lease    *cluster.Lead `json:"lease,omitempty"`
	Replicas []cluster.Pod `json:"replicas,omitempty"`
	Problems []string      `json:"problems"`
}

// status prints a status once.
func (v *verb) status(ctx context.Context, c *cluster.Cluster, controller string, out, progress io.Writer) error {
	return v.ask(ctx, c, progress, func(ctx context.Context, replica *cluster.Replica) error {
		report, err := replica.Report(ctx, controller, 10)
		if err != nil {
			return err
		}
		o := overview{Report: report, Problems: []string{}}
		// Both only add to the report, which has been read. What could not be read is a problem.
		if v.Server == "" {
			if lead, err := c.Lead(ctx); err != nil {
				o.Problems = append(o.Problems, err.Error())
			} else {
				o.Lease = &lead
			}
			if o.Replicas, err = c.Pods(ctx); err != nil {
				o.Problems = append(o.Problems, err.Error())
			}
		}
		o.Problems = append(o.Problems, cluster.Problems(o.Lease, o.Replicas, report)...)
		if v.output == "json" {
			return printJSON(out, o)
		}
		o.print(out, controller != "")
		return nil
	})
}

func (o overview) print(w io.Writer, one bool) {
	w = newPainter(w)
	fmt.Fprintf(w, "%s %s\n", o.Program, o.Version)
	if o.Lease == nil {
		fmt.Fprintf(w, "Leader: %s\n", o.Leader)
	} else {
		fmt.Fprintf(w, "Leader: %s\n", describe(*o.Lease, time.Now()))
	}
	if len(o.Replicas) > 0 {
		fmt.Fprintf(w, "Replicas: %d of %d ready\n", cluster.ReadyPods(o.Replicas), len(o.Replicas))
	}
	if o.Namespace != "" {
		fmt.Fprintf(w, "Serves: namespace %s only\n", o.Namespace)
	}
	if len(o.Problems) == 0 {
		fmt.Fprintln(w, "Problems: none")
	} else {
		fmt.Fprintln(w, "Problems:")
	}
	for _, problem := range o.Problems {
		debug.PrintWrapped(w, "  - ", problem)
	}
	fmt.Fprintln(w)
	if one {
		debug.PrintController(w, o.Report)
	} else {
		debug.PrintReport(w, o.Report)
	}
}

// describe says who leads, since when, and when it last renewed the Lease.
func describe(lead cluster.Lead, now time.Time) string {
	if lead.Holder == "" {
		return "nobody leads"
	}
	text := fmt.Sprintf("%s for %s, renewed %s ago", lead.Pod, duration.HumanDuration(now.Sub(lead.Since)),
		duration.HumanDuration(now.Sub(lead.Renewed)))
	if lead.Expired(now) {
		return "nobody leads; the last was " + text
	}
	return text
}

// watchStatus prints a status every 2 seconds. On a terminal it replaces the last one.
func (v *verb) watchStatus(cmd *cobra.Command, c *cluster.Cluster, controller string) error {
	out := cmd.OutOrStdout()
	for {
		var page strings.Builder
		if isTerminal(out) {
			page.WriteString("\x1b[H\x1b[2J")
		}
		// An error does not end the watch: one watches to see whether it goes away.
		if err := v.status(cmd.Context(), c, controller, paintedLike(&page, out), io.Discard); err != nil {
			debug.PrintWrapped(&page, "Error: ", err.Error())
		}
		if cmd.Context().Err() != nil {
			return nil // interrupted
		}
		fmt.Fprintf(&page, "\nAt %s\n", time.Now().UTC().Format(time.RFC3339))
		if _, err := io.WriteString(out, page.String()); err != nil {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(interval):
		}
	}
}
