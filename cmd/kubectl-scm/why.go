// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"samplecontroller.io/controller-manager/debug"

	"samplecontroller.io/sample-controller-manager/cmd/kubectl-scm/cluster"
)

// newWhyCommand returns the verb that prints what the daemon does about an object, and why.
func newWhyCommand() *cobra.Command {
	v := &verb{}
	command := &cobra.Command{
		Use:   "why kind [namespace/]name",
		Short: "Print what the daemon does about an object, and why.",
		Long: `Print what the daemon does about an object, and why: the desired and the actual state,
the next write or why there is none, the next try, the last syncs with their writes,
and the Events.

The leader's Pod answers, as for status. While no replica answers, it prints what
the object itself says. The exit code is 1 if there is no such object, or if no
replica answers.`,
		Example: `  kubectl scm why foo example-foo
  kubectl scm why foo default/example-foo
  kubectl scm why icecream -n shop vanilla`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("usage: why kind [namespace/]name, for example: kubectl scm why foo default/example-foo")
			}
			return nil
		},
		ValidArgsFunction: completeObjects(v),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.validate(); err != nil {
				return err
			}
			kind, err := cluster.KindOf(args[0])
			if err != nil {
				return err
			}
			c, err := v.Connect()
			if err != nil {
				return err
			}
			namespace, name, err := v.objectName(c, args[1])
			if err != nil {
				return err
			}
			return v.why(cmd, c, kind, namespace, name)
		},
	}
	v.addFlags(command)
	v.AddStatusFlags(command.Flags())
	v.addOutputFlag(command)
	return command
}

// objectName splits the argument for an object. Without a namespace, that of --namespace or the kubeconfig counts.
func (v *verb) objectName(c *cluster.Cluster, given string) (namespace, name string, err error) {
	namespace, name, qualified := strings.Cut(given, "/")
	if !qualified {
		namespace, name = c.Namespace, given
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not an object: use [<namespace>/]<name>, for example default/example-foo", given)
	}
	if qualified && v.GivenNamespace() != "" && v.GivenNamespace() != namespace {
		return "", "", fmt.Errorf("%q is not in the namespace %q that --namespace names", given, v.GivenNamespace())
	}
	return namespace, name, nil
}

// explanation is the JSON form of what the verb prints.
type explanation struct {
	debug.Explanation
	// Unanswered is why no replica answered. Then Object, and not the Explanation, is filled.
	Unanswered string          `json:"unanswered,omitempty"`
	Status     *cluster.Object `json:"status,omitempty"`
	Events     []cluster.Event `json:"events"`
}

var errNoObject = errors.New("object not found") // the page has said why

func (v *verb) why(cmd *cobra.Command, c *cluster.Cluster, kind cluster.Kind, namespace, name string) error {
	var e explanation
	failure := v.ask(cmd.Context(), c, cmd.ErrOrStderr(), func(ctx context.Context, replica *cluster.Replica) (err error) {
		e.Explanation, err = replica.Explain(ctx, kind.Controller, namespace, name)
		return err
	})
	ctx, cancel := v.bounded(cmd.Context())
	defer cancel()
	if failure != nil {
		// The object itself may tell enough.
		object, err := c.Object(ctx, kind, namespace, name)
		if err != nil {
			return failure
		}
		e.Unanswered, e.Status = failure.Error(), &object
	} else if !e.Found {
		failure = errNoObject
	}
	var events error
	if failure == nil || e.Status != nil {
		e.Events, events = c.Events(ctx, kind, namespace, name)
	}
	if v.output == "json" {
		if err := printJSON(cmd.OutOrStdout(), e); err != nil {
			return err
		}
		return failure
	}
	w := newPainter(cmd.OutOrStdout())
	if e.Status != nil {
		printObject(w, *e.Status)
	} else {
		debug.PrintExplanation(w, e.Explanation)
	}
	if events != nil {
		debug.PrintWrapped(w, "\nEvents: ", events.Error())
	}
	printEvents(w, e.Events)
	return failure
}

// printObject prints what the status of an object says.
func printObject(w io.Writer, o cluster.Object) {
	debug.PrintWrapped(w, "", fmt.Sprintf("%s %s: %s, as its status says; no replica of the daemon answers", o.Kind, o.Key(), o.Condition))
	fmt.Fprintln(w)
	debug.PrintWrapped(w, "Reason:  ", o.Reason)
	debug.PrintWrapped(w, "Message: ", o.Message)
	if o.Paused != "" {
		debug.PrintWrapped(w, "Paused:  ", o.Paused)
	}
	debug.PrintWrapped(w, "Pods:    ", fmt.Sprintf("%d of %d available. %s", o.Available, o.Replicas, o.Pods))
	debug.PrintWrapped(w, "Next:    ", "see kubectl scm leader; then: "+o.Next)
}

func printEvents(w io.Writer, events []cluster.Event) {
	if len(events) == 0 {
		return
	}
	fmt.Fprintln(w, "\nEvents:")
	for _, e := range events {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		ago := duration.HumanDuration(time.Since(e.Last))
		debug.PrintWrapped(w, "  ", fmt.Sprintf("%s ago%s %s %s: %s", ago, times, e.Type, e.Reason, e.Message))
	}
}
