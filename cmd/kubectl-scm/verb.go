// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// verb is what the verbs have in common: the flags for the cluster, for the output and for the time that the verb
// may take.
type verb struct {
	cluster.Options
	output  string
	timeout time.Duration
}

// addFlags adds the flags that all verbs have.
func (v *verb) addFlags(command *cobra.Command) {
	v.AddFlags(command.Flags())
	command.Flags().DurationVar(&v.timeout, "timeout", 30*time.Second, "How long a request, with all that it needs, may take.")
}

// addOutputFlag adds the flag for the output format.
func (v *verb) addOutputFlag(command *cobra.Command, formats ...string) {
	formats = append([]string{"text", "json"}, formats...)
	command.Flags().StringVarP(&v.output, "output", "o", "text", "Output format: "+strings.Join(formats, ", ")+".")
	// The flag exists.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// validate returns the first invalid flag.
func (v *verb) validate(formats ...string) error {
	if v.timeout <= 0 {
		return fmt.Errorf("invalid --timeout %v: must be positive", v.timeout)
	}
	formats = append([]string{"text", "json"}, formats...)
	if v.output != "" && !slices.Contains(formats, v.output) {
		return fmt.Errorf("invalid --output %q: must be %s", v.output, strings.Join(formats, " or "))
	}
	return v.Options.Validate()
}

// withoutNamespace returns an error if --namespace was given to a verb that names no object. Until v0.2.0 it was the
// namespace of the daemon.
func (v *verb) withoutNamespace() error {
	if v.GivenNamespace() == "" {
		return nil
	}
	return errors.New("--namespace is the namespace of objects, and this names none: the namespace of the daemon is --daemon-namespace")
}

// bounded returns a context for one request, with all that it needs.
func (v *verb) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, v.timeout, fmt.Errorf("no answer within %v", v.timeout))
}

// withCause adds the timeout to an error that it caused.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// ask connects to the selected replica and calls f with the connection. The Pod goes to the standard error, so that it
// is known which replica answers or does not.
func (v *verb) ask(ctx context.Context, c *cluster.Cluster, progress io.Writer,
	f func(context.Context, *cluster.Replica) error) error {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	replica, err := c.Dial(ctx, func(pod string) { fmt.Fprintf(progress, "Asking Pod %s\n", pod) })
	if err != nil {
		return withCause(ctx, err)
	}
	defer replica.Close()
	return withCause(ctx, f(ctx, replica))
}

// printJSON prints a value.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
