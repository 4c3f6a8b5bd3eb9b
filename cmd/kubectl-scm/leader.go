// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newLeaderCommand returns the verb that prints who leads.
func newLeaderCommand() *cobra.Command {
	v := &verb{}
	command := &cobra.Command{
		Use:   "leader",
		Short: "Print who leads, and who led before.",
		Long: `Print who leads, and who led before, by the Lease and the Events about it. It asks only
the API server, so it works without a replica. The exit code is 1 if nobody leads.`,
		Example: `  kubectl scm leader
  kubectl scm leader -o name`,
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(v.validate("name"), v.withoutNamespace()); err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			return v.leader(cmd, c)
		},
	}
	v.addFlags(command)
	v.addOutputFlag(command, "name")
	return command
}

// leadership is the JSON form of what the verb prints.
type leadership struct {
	cluster.Lead
	Changes []cluster.Handover `json:"changes"`
}

func (v *verb) leader(cmd *cobra.Command, c *cluster.Cluster) error {
	ctx, cancel := v.bounded(cmd.Context())
	defer cancel()
	lead, err := c.Lead(ctx)
	if err != nil {
		return withCause(ctx, err)
	}
	var nobody error
	if lead.Holder == "" || lead.Expired(time.Now()) {
		nobody = errors.New("nobody leads: see kubectl scm status --pod=<replica>, or the log of a replica")
	}
	w := newPainter(cmd.OutOrStdout())
	if v.output == "name" {
		if nobody == nil {
			fmt.Fprintf(w, "pod/%s\n", lead.Pod)
		}
		return nobody
	}
	changes, unknown := c.Handovers(ctx)
	if v.output == "json" {
		if err := printJSON(w, leadership{lead, changes}); err != nil {
			return err
		}
		return nobody
	}
	fmt.Fprintf(w, "Leader: %s\n", describe(lead, time.Now()))
	if unknown != nil {
		debug.PrintWrapped(w, "Changes: ", unknown.Error())
		return nobody
	}
	if len(changes) > 0 {
		fmt.Fprintln(w, "Changes, as far as there are Events:")
	}
	for _, change := range changes {
		process, _, _ := strings.Cut(change.Process, "_")
		fmt.Fprintf(w, "  %4s ago  %s %s\n", duration.HumanDuration(time.Since(change.Time)), process, change.What)
	}
	return nobody
}
