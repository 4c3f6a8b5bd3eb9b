// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newObjectsCommand returns the verb that prints the objects that are not Ready.
func newObjectsCommand() *cobra.Command {
	v, all := &verb{}, false
	command := &cobra.Command{
		Use:   "objects [kind]",
		Short: "Print the objects that are not Ready or are paused, with the reason and what to do.",
		Long: `Print the objects that are not Ready or are paused, with the reason and what to do:
those that need somebody (Stalled) first, then those that are on their way, each the
oldest first.

It reads all namespaces, or the one that --namespace names, with your own
credentials. It asks no replica.`,
		Example: `  kubectl scm objects
  kubectl scm objects foo -n default
  kubectl scm objects --all -o json`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return noFiles(nil)
			}
			return completeObjects(v)(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.validate(); err != nil {
				return err
			}
			kinds := cluster.Kinds
			if len(args) == 1 {
				kind, err := cluster.KindOf(args[0])
				if err != nil {
					return err
				}
				kinds = []cluster.Kind{kind}
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			return v.objects(cmd, c, kinds, all)
		},
	}
	v.addFlags(command)
	v.addOutputFlag(command)
	command.Flags().BoolVar(&all, "all", false, "Print also those that are Ready.")
	return command
}

// listing is the JSON form of what the verb prints.
type listing struct {
	// Total is the number of objects, and Objects are those that are printed.
	Total   int              `json:"total"`
	Objects []cluster.Object `json:"objects"`
}

func (v *verb) objects(cmd *cobra.Command, c *cluster.Cluster, kinds []cluster.Kind, all bool) error {
	ctx, cancel := v.bounded(cmd.Context())
	defer cancel()
	l := listing{Objects: []cluster.Object{}}
	ready, paused := 0, 0
	var failures []error
	for _, kind := range kinds {
		err := c.Objects(ctx, kind, v.GivenNamespace(), func(o cluster.Object) {
			l.Total++
			if o.Ready() {
				ready++
			}
			if o.Paused != "" {
				paused++
			}
			if all || !o.Ready() || o.Paused != "" {
				l.Objects = append(l.Objects, o)
			}
		})
		failures = append(failures, v.withNamespace(ctx, err))
	}
	slices.SortFunc(l.Objects, cluster.Urgency)
	failure := errors.Join(failures...)
	if v.output == "json" {
		if err := printJSON(cmd.OutOrStdout(), l); err != nil {
			return err
		}
		return failure
	}
	w := newPainter(cmd.OutOrStdout())
	for _, o := range l.Objects {
		printListed(w, o)
	}
	if failure == nil || l.Total > 0 {
		fmt.Fprintf(w, "%d of %d objects are Ready.\n", ready, l.Total)
		if paused > 0 {
			fmt.Fprintf(w, "Paused: %d.\n", paused)
		}
	}
	return failure
}

// withNamespace adds to the error of a list what may help.
func (v *verb) withNamespace(ctx context.Context, err error) error {
	if err != nil && v.GivenNamespace() == "" && strings.Contains(err.Error(), "in all namespaces") {
		err = fmt.Errorf("%w; name one with --namespace", err)
	}
	return withCause(ctx, err)
}

func printListed(w io.Writer, o cluster.Object) {
	state := strings.TrimSpace(o.Condition + " " + o.Reason)
	since := duration.HumanDuration(time.Since(o.Since))
	debug.PrintWrapped(w, "", fmt.Sprintf("%s %s: %s for %s, %d of %d available", o.Kind, o.Key(), state, since, o.Available, o.Replicas))
	if o.Paused != "" {
		debug.PrintWrapped(w, "    ", o.Paused)
	}
	if !o.Ready() {
		if o.Message != "" {
			debug.PrintWrapped(w, "    ", o.Message)
		}
		debug.PrintWrapped(w, "    Next: ", o.Next)
	}
}
