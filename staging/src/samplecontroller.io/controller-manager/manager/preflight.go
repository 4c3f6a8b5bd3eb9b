// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/preflight"
)

// newPreflightCommand returns the subcommand that checks that the program would run. It has
// all flags of the program.
func newPreflightCommand(p Program, o *options.Options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Check that the program would run with these flags and credentials.",
		Long: `Check that the program would run with these flags and credentials: its permissions,
the APIs that it reads, its namespace and its Lease. Nothing is written to the
cluster.

The exit code is 1 if a check fails: then the program would not run, or would not
do all of its work.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd, p.Name) {
				return nil
			}
			write, ok := writers[output]
			if !ok {
				return fmt.Errorf("invalid --output %q: must be table or json", output)
			}
			checks, err := p.preflight(cmd.Context(), o)
			if err != nil {
				return err
			}
			report, err := preflight.Run(cmd.Context(), checks)
			if err != nil {
				return err
			}
			if err := write(&report, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("writing the report: %w", err)
			}
			if report.Count(preflight.FAIL) > 0 {
				return errLogged
			}
			return nil
		},
	}
	var sections cliflag.NamedFlagSets
	sections.FlagSet("preflight").StringVarP(&output, "output", "o", "table", "Format of the report: table or json.")
	addAllFlags(command, o, sections)
	return command
}

// addAllFlags adds the flags of the program to a subcommand, after its own.
func addAllFlags(command *cobra.Command, o *options.Options, own cliflag.NamedFlagSets) {
	flagSets := o.Flags()
	for name, section := range flagSets.FlagSets {
		if section.Lookup("output") != nil || section.ShorthandLookup("o") != nil {
			panic(misuse.Errorf("--output and -o are flags of subcommands: the section %q must not have them", name))
		}
	}
	sections := cliflag.NamedFlagSets{Order: slices.Concat(own.Order, flagSets.Order),
		FlagSets: maps.Clone(flagSets.FlagSets)}
	maps.Copy(sections.FlagSets, own.FlagSets)
	for _, name := range sections.Order {
		command.Flags().AddFlagSet(sections.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sections, columns)
}

// writers maps each value of --output to what writes the report.
var writers = map[string]func(*preflight.Report, io.Writer) error{
	"table": (*preflight.Report).WriteTable,
	"json":  (*preflight.Report).WriteJSON,
}

// built is a program that is built and not run.
type built struct {
	config *options.Config
	shared *controller.Shared // whose Events must be shut down
	needs  *needs
}

// build makes the enabled controllers, to learn what they declare and read. It opens no port and calls
// no API.
func (p Program) build(ctx context.Context, o *options.Options) (*built, error) {
	return p.buildNamed(ctx, o, func(c *options.Config) []string { return c.Enabled })
}

// buildNamed is like build for the controllers with the returned names.
func (p Program) buildNamed(
	ctx context.Context, o *options.Options, names func(*options.Config) []string,
) (*built, error) {
	if err := complete(o); err != nil {
		return nil, err
	}
	c, err := o.ConfigWithoutServing() // the program itself may be running
	if err != nil {
		return nil, err
	}
	shared, _, err := p.newShared(ctx, c, metricsOf(p.Name))
	if err != nil {
		return nil, err
	}
	enabled := names(c)
	controllers, err := c.Controllers.Build(ctx, shared, enabled)
	if err == nil {
		err = errors.Join(controller.Unbuilt(controllers), validate(controllers))
	}
	serving := o.Server.SecureServing.BindPort != 0
	if err == nil && serving {
		err = o.Server.CheckFiles()
	}
	if err != nil {
		shared.Events.Shutdown()
		return nil, err
	}
	n := newNeeds(c, shared, enabled)
	if serving {
		n.addServing(o.Server)
	}
	return &built{c, shared, n}, nil
}

// preflight returns what to check.
func (p Program) preflight(ctx context.Context, o *options.Options) (preflight.Program, error) {
	b, err := p.build(ctx, o)
	if err != nil {
		return preflight.Program{}, err
	}
	shared, n := b.shared, b.needs
	defer shared.Events.Shutdown()
	return preflight.Program{
		Config:      configFor(shared, "preflight"),
		Accounts:    shared.Accounts,
		Permissions: n.groups,
		Undeclared:  n.undeclared(),
		APIs:        n.apis(shared.Informers.Resources()),
		Namespace:   b.config.Generic.Namespace,
		Pause:       &preflight.Pause{Annotation: controller.PauseAnnotation(p.Name), Permissions: ofPauses(b)},
		Lease:       n.lease,
	}, nil
}
