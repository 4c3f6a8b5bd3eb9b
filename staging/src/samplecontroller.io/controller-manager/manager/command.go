// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	componentlogs "k8s.io/component-base/logs"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/version"
)

// NewCommand returns the command of the program, for a program that adds it to a command of its
// own, and for tests. Its context must be set: the program runs until it ends. The command can be
// executed once. NewCommand panics if the program is invalid; [Execute] returns that as an error.
func NewCommand(p Program) *cobra.Command { return newCommand(p, p.options()) }

// newCommand returns a command that parses its arguments into the options, which must come from
// [Program.options].
func newCommand(p Program, o *options.Options) *cobra.Command {
	command := &cobra.Command{
		Use:  p.Name,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd, p.Name) {
				return nil
			}
			if err := connection.NoticeDeadConnections(); err != nil {
				return err
			}
			if err := complete(o); err != nil {
				return err
			}
			// Set up logging before anything logs or makes a client. A client decides when it
			// is made whether to log its requests.
			if err := logs.Apply(cmd.Context(), o.Logs, o.FeatureGates); err != nil {
				return err
			}
			defer logs.Flush()
			logger := klog.FromContext(cmd.Context())
			logger.Info("Starting "+p.Name, "version", version.Get().GitVersion)
			ctx, stop := announceEnd(cmd.Context())
			defer stop()
			config, err := o.Config(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return nil // stopped while starting
				}
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			if err := p.startBounded(ctx, config); err != nil {
				logger.Error(err, "Controller manager failed")
				return errLogged
			}
			return nil
		},
		// Do not print the usage: its hundred lines would hide the error.
		SilenceUsage: true,
	}
	command.SetFlagErrorFunc(flagError)
	command.AddCommand(newControllersCommand(p, o), newPlanCommand(p, o), newPreflightCommand(p, o), newRBACCommand(p, o),
		newVersionCommand(p))
	command.CompletionOptions.DisableDefaultCmd = true
	command.SuggestionsMinimumDistance = 2
	command.Long = strings.TrimLeft(p.Description+"\n\n"+subcommands(command), "\n")

	flagSets := o.Flags()
	for _, name := range flagSets.Order {
		command.Flags().AddFlagSet(flagSets.FlagSets[name])
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, *flagSets, columns)
	componentlogs.AddFlags(command.Flags(), componentlogs.SkipLoggingConfigurationFlags())
	return command
}

// printVersion prints the version of the program if the flag --version asks for it. It returns
// whether it does.
func printVersion(cmd *cobra.Command, name string) bool {
	switch cmd.Flags().Lookup("version").Value.String() {
	case "true":
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", name, version.Get())
	case "raw":
		fmt.Fprintf(cmd.OutOrStdout(), "%#v\n", version.Get())
	default:
		return false
	}
	return true
}

// subcommands returns a table of the subcommands.
func subcommands(command *cobra.Command) string {
	lines := []string{"Commands:"}
	for _, c := range command.Commands() {
		lines = append(lines, fmt.Sprintf("  %-12s %s", c.Name(), c.Short))
	}
	return strings.Join(lines, "\n")
}

// newVersionCommand returns the subcommand that prints what --version prints.
func newVersionCommand(p Program) *cobra.Command {
	const short = "Print the version."
	command := &cobra.Command{
		Use: "version", Short: short, Long: short, Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), p.Name, version.Get())
		},
	}
	cliflag.SetUsageAndHelpFunc(command, cliflag.NamedFlagSets{}, 0)
	return command
}

// noArguments rejects positional arguments. Usually they are a misspelled command, a flag with
// a missing dash, or a value with an extra space.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	advice := fmt.Sprintf("flags begin with two dashes, and their values follow an =; see %s --help", cmd.CommandPath())
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%q takes no arguments, got %q; %s", cmd.CommandPath(), args, advice)
	}
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", args[0], strings.Join(similar, " or "))
	}
	return fmt.Errorf("unknown command %q; %s", args[0], advice)
}

// flagError explains a flag that cannot be parsed.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		// sample-controller accepts -kubeconfig. Here it would be a series of one-letter
		// flags.
		if name, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "="); len(name) > 1 && cmd.Flags().Lookup(name) != nil {
			return fmt.Errorf("unknown flag -%s: write it with two dashes, --%s", name, name)
		}
	}
	return fmt.Errorf("%s; see %s --help", plain(err.Error()), cmd.CommandPath())
}

// parsing matches how the functions of package strconv say that they cannot parse a value.
var parsing = regexp.MustCompile(`strconv\.(?:Parse)?(\w+): parsing ("(?:[^"\\]|\\.)*"): (invalid syntax|value out of range)`)

// kinds are what the functions of package strconv parse.
var kinds = map[string]string{
	"Atoi": "a whole number", "Int": "a whole number", "Uint": "a whole number from 0", "Float": "a number", "Bool": "true or false",
}

// plain says without the names of Go functions that a value cannot be parsed.
func plain(text string) string {
	text = parsing.ReplaceAllStringFunc(text, func(found string) string {
		parts := parsing.FindStringSubmatch(found)
		kind, value := kinds[parts[1]], parts[2]
		switch {
		case parts[3] != "invalid syntax":
			return value + " is out of range"
		case kind == "":
			return value + " is invalid"
		default:
			return value + " is not " + kind
		}
	})
	// The durations of all flags are parsed by package time.
	if before, after, ok := strings.Cut(text, " flag: time: "); ok {
		return before + " flag: " + after + ": want a number and a unit, for example 30s or 2m"
	}
	return text
}
