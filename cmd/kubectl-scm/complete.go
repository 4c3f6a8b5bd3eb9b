// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// completionTimeout is how long a shell waits for a completion.
const completionTimeout = 3 * time.Second

// noFiles is the completion of arguments that are not files, when nothing else is known.
func noFiles(names []string) ([]string, cobra.ShellCompDirective) {
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeControllers completes the first argument with the names of the controllers. It asks no replica, because that
// takes seconds.
func completeControllers() cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return noFiles(nil)
		}
		return noFiles(cluster.Controllers())
	}
}

// completeObjects completes a kind and then an object of it.
func completeObjects(v *verb) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			var kinds []string
			for _, kind := range cluster.Kinds {
				kinds = append(kinds, kind.Controller)
			}
			return noFiles(kinds)
		case 1:
			return noFiles(v.objectNames(cmd.Context(), args[0], begun))
		default:
			return noFiles(nil)
		}
	}
}

// objectNames returns the objects of a kind: by name in the namespace in force, and as namespace/name once a namespace
// is begun.
func (v *verb) objectNames(ctx context.Context, kindName, begun string) []string {
	kind, err := cluster.KindOf(kindName)
	if err != nil {
		return nil
	}
	c, err := v.Connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	namespace, _, qualified := strings.Cut(begun, "/")
	if !qualified {
		namespace = c.Namespace
	}
	var names []string
	// Without a permission or an answer, nothing is completed.
	_ = c.Objects(ctx, kind, namespace, func(o cluster.Object) {
		if qualified {
			names = append(names, o.Key())
		} else {
			names = append(names, o.Name)
		}
	})
	return names
}
