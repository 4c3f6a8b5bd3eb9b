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

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newPauseCommand returns the verb that makes the daemon leave an object or a namespace alone.
func newPauseCommand() *cobra.Command {
	v, length, end := &verb{}, time.Duration(0), ""
	command := pausing(v, "pause", func(cmd *cobra.Command, c *cluster.Cluster, p cluster.Pausable) error {
		for _, name := range []string{"for", "until"} {
			// An unset variable of a script must not pause without end.
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == f.DefValue {
				return fmt.Errorf("invalid --%s %q: must say when the pause ends; for a pause without end, leave --%[1]s out",
					name, f.Value)
			}
		}
		value, err := pauseValue(time.Now(), length, end)
		if err != nil {
			return err
		}
		return v.pause(cmd, c, p, value)
	})
	command.Short = "Make the daemon leave an object, or all of a namespace, alone."
	command.Long = `Make the daemon leave an object, or all of a namespace, alone: it writes nothing for it
but a condition that says so. Objects that are being deleted are not paused.

It sets an annotation with your own credentials. A whole controller is paused by the
daemon's flag --paused-controllers.`
	command.Example = `  kubectl scm pause foo example-foo --for=2h
  kubectl scm pause foo default/example-foo
  kubectl scm pause namespace shop --until=2026-01-02T15:04:05Z`
	command.Flags().DurationVar(&length, "for", 0, "How long the pause lasts. By default it lasts until it is resumed.")
	command.Flags().StringVar(&end, "until", "", "When the pause ends, such as 2026-01-02T15:04:05Z.")
	return command
}

// newResumeCommand returns the verb that ends a pause.
func newResumeCommand() *cobra.Command {
	v := &verb{}
	command := pausing(v, "resume", v.resume)
	command.Short = "End the pause of an object or a namespace."
	command.Long = `End the pause of an object or a namespace: the daemon then corrects what was changed.
It removes the annotation with your own credentials.`
	command.Example = `  kubectl scm resume foo default/example-foo
  kubectl scm resume namespace shop`
	return command
}

// pausing returns a verb for an object or a namespace.
func pausing(v *verb, name string, run func(*cobra.Command, *cluster.Cluster, cluster.Pausable) error) *cobra.Command {
	objects := completeObjects(v)
	command := &cobra.Command{
		Use: name + " kind [namespace/]name | namespace name",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			names, directive := objects(cmd, args, begun)
			if len(args) == 0 {
				names = append(names, "namespace")
			}
			return names, directive
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.validate(); err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			p, err := v.pausable(c, name, args)
			if err != nil {
				return err
			}
			return run(cmd, c, p)
		},
	}
	v.addFlags(command)
	return command
}

// pausable returns what the arguments of a verb name: kind [namespace/]name, kind/name or namespace name.
func (v *verb) pausable(c *cluster.Cluster, verb string, args []string) (p cluster.Pausable, err error) {
	usage := fmt.Sprintf("usage: %[1]s kind [namespace/]name, for example: kubectl scm %[1]s foo default/example-foo", verb)
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
		given := strings.TrimSuffix(args[0], "-controller")
		if len(args) == 1 && slices.Contains(cluster.Controllers(), given) {
			return p, fmt.Errorf("a whole controller is paused by the flag --paused-controllers=%s-controller of all replicas; for one object: %s", given, usage)
		}
	}
	if len(args) != 2 {
		return p, errors.New(usage)
	}
	if slices.Contains([]string{"namespace", "namespaces", "ns"}, strings.ToLower(args[0])) {
		if args[1] == "" || strings.Contains(args[1], "/") {
			return p, fmt.Errorf("%q is not the name of a namespace", args[1])
		}
		return cluster.Pausable{Name: args[1]}, v.withoutNamespace()
	}
	if p.Kind, err = cluster.KindOf(args[0]); err != nil {
		return p, fmt.Errorf("%w, or namespace", err)
	}
	p.Namespace, p.Name, err = v.objectName(c, args[1])
	return p, err
}

// pauseValue returns the value of the annotation for the flags.
func pauseValue(now time.Time, length time.Duration, end string) (string, error) {
	switch {
	case length != 0 && end != "":
		return "", errors.New("--for and --until are mutually exclusive: each says when the pause ends")
	case length < 0:
		return "", fmt.Errorf("invalid --for %v: must be positive", length)
	case length > 0:
		return now.Add(length + time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339), nil
	case end == "":
		return "true", nil
	}
	until, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return "", fmt.Errorf("invalid --until %q: must be a time such as 2026-01-02T15:04:05Z", end)
	}
	if !until.After(now) {
		return "", fmt.Errorf("invalid --until %s: must not be over", end)
	}
	return until.Format(time.RFC3339), nil
}

func (v *verb) pause(cmd *cobra.Command, c *cluster.Cluster, p cluster.Pausable, value string) error {
	ctx, cancel := v.bounded(cmd.Context())
	defer cancel()
	if _, _, err := c.Pause(ctx, p, &value); err != nil {
		return withCause(ctx, err)
	}
	end := "until it is resumed"
	if value != "true" {
		end = "until " + value
	}
	next := "The daemon writes nothing for it but the condition Paused, unless it is being deleted."
	if p.IsNamespace() {
		next = "The daemon writes nothing for its objects but the condition Paused, unless they are being deleted. A daemon with --namespace, or without the right to read namespaces, ignores this."
	}
	w := cmd.OutOrStdout()
	debug.PrintWrapped(w, "", fmt.Sprintf("Paused %s %s. %s", p, end, next))
	_, err := fmt.Fprintln(w, "To resume: kubectl scm resume "+p.Arguments())
	return err
}

func (v *verb) resume(cmd *cobra.Command, c *cluster.Cluster, p cluster.Pausable) error {
	ctx, cancel := v.bounded(cmd.Context())
	defer cancel()
	before, object, err := c.Pause(ctx, p, nil)
	if err != nil {
		return withCause(ctx, err)
	}
	still, err := stillPaused(ctx, c, p, object)
	printResumed(cmd.OutOrStdout(), p, before, still)
	if err != nil {
		debug.PrintWrapped(cmd.OutOrStdout(), "", "It is not known whether its namespace is paused, too: "+err.Error())
	}
	return nil
}

// stillPaused returns what else pauses an object: what its status says, or the annotation of its namespace.
func stillPaused(ctx context.Context, c *cluster.Cluster, p cluster.Pausable, object cluster.Object) (string, error) {
	if object.Paused != "" && !strings.Contains(object.Paused, " of this "+p.Kind.Name+" ") {
		return object.Paused, nil
	}
	if p.IsNamespace() {
		return "", nil
	}
	paused, err := c.IsNamespacePaused(ctx, p.Namespace)
	if err != nil || !paused {
		return "", err
	}
	return fmt.Sprintf("namespace %s has the annotation, too; to resume: kubectl scm resume namespace %[1]s. A daemon with "+
		"--namespace, or without the right to read namespaces, ignores that.", p.Namespace), nil
}

// printResumed prints what happens next. before is the former value of the annotation, nil if there was none. still is
// what else pauses the object, empty if nothing does.
func printResumed(w io.Writer, p cluster.Pausable, before *string, still string) {
	text := fmt.Sprintf("Resumed %s. The daemon corrects what was changed in the meantime, within a second.", p)
	switch {
	case before == nil:
		text = fmt.Sprintf("%s has no annotation %s: there is nothing to remove.", p, cluster.PauseAnnotation)
	case still != "":
		text = fmt.Sprintf("Removed the annotation of %s.", p)
	}
	debug.PrintWrapped(w, "", text)
	if still != "" {
		debug.PrintWrapped(w, "", "It is still paused: "+still)
	}
}
