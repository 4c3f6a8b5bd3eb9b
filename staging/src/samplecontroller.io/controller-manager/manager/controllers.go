// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
)

// newControllersCommand returns the subcommand that lists the controllers. It needs no
// cluster.
func newControllersCommand(registry *controller.Registry) *cobra.Command {
	command := &cobra.Command{
		Use:   "controllers",
		Short: "List the controllers that --controllers can select.",
		Long:  "List the controllers that --controllers can select. No cluster is needed.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "NAME\tALIASES\tDEFAULT\tWORKERS\tRESOURCES")
			for _, d := range registry.Descriptors() {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", d.Name, strings.Join(d.Aliases, ","), onOff(!d.DisabledByDefault), d.Workers, strings.Join(resources(d), ","))
			}
			return table.Flush()
		},
	}
	// Otherwise the subcommand would inherit all flags of the main command.
	cliflag.SetUsageAndHelpFunc(command, cliflag.NamedFlagSets{}, 0)
	return command
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
	for _, rule := range d.Rules {
		for _, resource := range rule.Resources {
			if strings.Contains(resource, "/") {
				continue
			}
			for _, group := range rule.APIGroups {
				names = append(names, strings.TrimSuffix(resource+"."+group, "."))
			}
		}
	}
	return names
}
