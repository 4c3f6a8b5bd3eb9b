// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/options"
)

// newControllersCommand returns the subcommand that lists the controllers. It needs no
// cluster.
func newControllersCommand(p Program, o *options.Options) *cobra.Command {
	command := &cobra.Command{
		Use:   "controllers",
		Short: "List the controllers that --controllers can select.",
		Long:  "List the controllers that --controllers can select. No cluster is needed.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "NAME\tALIASES\tDEFAULT\tWORKERS\tRESOURCES")
			descriptors, err := p.allNeeds(cmd.Context(), o)
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "RESOURCES are incomplete, because the controllers cannot be built with the "+
					"default flags: %v\n", err)
			}
			for _, d := range descriptors {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", d.Name, strings.Join(d.Aliases, ","), onOff(!d.DisabledByDefault), d.Workers,
					strings.Join(resources(d), ","))
			}
			return table.Flush()
		},
	}
	// Otherwise the subcommand would inherit all flags of the main command.
	cliflag.SetUsageAndHelpFunc(command, cliflag.NamedFlagSets{}, 0)
	return command
}

// allNeeds returns the descriptors of all controllers, with all permissions that they need. With an
// error, they have only those that are in Rules.
func (p Program) allNeeds(ctx context.Context, o *options.Options) ([]controller.Descriptor, error) {
	all := o.Controllers.Descriptors()
	offline(o)
	b, err := p.buildNamed(ctx, o, func(*options.Config) []string { return o.Controllers.Names() })
	if err != nil {
		return all, err
	}
	defer b.shared.Events.Shutdown()
	for i, d := range all {
		all[i].Rules = b.shared.RulesOf(d)
	}
	return all, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// resources returns the resources that a controller reads or writes, without subresources, in
// the order of its rules.
func resources(d controller.Descriptor) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, rule := range d.Rules {
		for _, resource := range rule.Resources {
			if strings.Contains(resource, "/") {
				continue
			}
			for _, group := range rule.APIGroups {
				add(strings.TrimSuffix(resource+"."+group, "."))
			}
		}
	}
	return names
}
