// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/plan"
)

// errWouldChange is the error of a complete plan with changes. Its exit code is 2.
var errWouldChange = errors.New("objects would change")

// planOptions are the flags of plan.
type planOptions struct {
	output  string
	as      string
	timeout time.Duration
}

// newPlanCommand returns the subcommand that shows what the controllers would write. It has all flags of the program.
func newPlanCommand(p Program, o *options.Options) *cobra.Command {
	var own planOptions
	command := &cobra.Command{
		Use:   "plan",
		Short: "Show what the controllers would change in the cluster.",
		Long: `Show what the controllers would change in the cluster, as a diff of each object.
Each controller is called once for each of its objects. Each write is sent as a
dry run, so that the API server validates it and nothing is stored. What follows
from a change, such as a status, is not predicted.

With --kubeconfig, the requests are sent as the program's ServiceAccount, by
impersonation, so that its permissions and policies apply: see --as.

The exit code is 0 if nothing would change, 2 if something would, and 1 if the
plan is not complete, for example because a webhook does not support dry runs.
Objects that are paused for any of their controllers are counted as not planned,
and controllers without a queue of objects are listed. Neither changes the exit
code.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd, p.Name) {
				return nil
			}
			if own.output != "text" && own.output != "json" {
				return fmt.Errorf("invalid --output %q: must be text or json", own.output)
			}
			if own.timeout <= 0 {
				return fmt.Errorf("invalid --timeout %v: must be positive", own.timeout)
			}
			if err := complete(o); err != nil { // which reads the configuration file
				return err
			}
			if !cmd.Flags().Changed("as") {
				const namespace = "leader-elect-resource-namespace"
				own.as = p.account(o, cmd.Flags().Changed(namespace) || o.File.Sets(namespace))
			}
			if err := configureLog(cmd.Context(), o); err != nil {
				return err
			}
			report, err := p.plan(cmd.Context(), o, own)
			if err != nil {
				return err
			}
			return printPlan(cmd.OutOrStdout(), &report, own.output)
		},
	}
	var sections cliflag.NamedFlagSets
	own.addFlags(sections.FlagSet("plan"), p.Name)
	for name, section := range o.Flags().FlagSets {
		if section.Lookup("as") != nil || section.Lookup("timeout") != nil {
			panic(misuse.Errorf("--as and --timeout are flags of plan: the section %q must not have them", name))
		}
	}
	addAllFlags(command, o, sections)
	return command
}

func (o *planOptions) addFlags(fs *pflag.FlagSet, program string) {
	fs.StringVarP(&o.output, "output", "o", "text", "Format of the plan: text or json.")
	fs.StringVar(&o.as, "as", "", "The user to impersonate. Defaults to the ServiceAccount "+program+" in the namespace of the Lease or, "+
		"if that is kube-system and not set, in the namespace "+program+". In a cluster, without --kubeconfig, and if empty, "+
		"the program uses its credentials and impersonates nobody.")
	fs.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long the plan may take.")
}

// hasPodCredentials reports whether the process has the credentials of a Pod in the cluster.
func hasPodCredentials(o *options.Options) bool {
	return o.Client.Config != nil || o.Client.Connection.Kubeconfig == "" && o.Client.Master == ""
}

// account returns the ServiceAccount of the program as a user. It is empty in a cluster, where the process has its
// credentials.
func (p Program) account(o *options.Options, namespaceIsSet bool) string {
	if hasPodCredentials(o) {
		return ""
	}
	namespace := o.LeaderElection.ResourceNamespace
	if namespace == metav1.NamespaceSystem && !namespaceIsSet { // the default outside of a cluster
		namespace = p.Name
	}
	return serviceAccountUser + namespace + ":" + p.Name
}

// configureLog discards the log, also of code that logs without a context, unless -v asks for one: the plan reports
// errors itself.
func configureLog(ctx context.Context, o *options.Options) error {
	if o.Logs.Verbosity == 0 {
		klog.SetLogger(logr.Discard())
		return nil
	}
	return logs.Apply(ctx, o.Logs, o.FeatureGates)
}

// printPlan prints a plan and returns an error that determines the exit code.
func printPlan(w io.Writer, report *plan.Report, format string) error {
	var err error
	if format == "json" {
		err = report.WriteJSON(w)
	} else {
		_, _, notTerminal := term.TerminalSize(w)
		colored := notTerminal == nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		err = report.WriteText(w, colored)
	}
	switch {
	case err != nil:
		return fmt.Errorf("writing the plan: %w", err)
	case report.Failed():
		return errLogged
	case len(report.Changes) > 0:
		return errWouldChange
	default:
		return nil
	}
}
