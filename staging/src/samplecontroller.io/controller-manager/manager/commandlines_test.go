// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/options"
)

// manyFlags returns a program like sample-controller-manager.
func manyFlags() Program {
	descriptor := func(name string, alias string) controller.Descriptor {
		return controller.Descriptor{Name: name + "-controller", Aliases: []string{alias}, Workers: 2,
			New: func(context.Context, *controller.Context) (controller.Controller, error) { return nil, nil }}
	}
	summary := descriptor("status-aggregator", "summary")
	var interval time.Duration
	const flag = "status-aggregation-interval"
	summary.Flags = func(fs *pflag.FlagSet) { fs.DurationVar(&interval, flag, time.Second, "") }
	summary.Validate = func() []error { return controller.CheckDuration(flag, interval, 0) }
	return Program{Name: "sample-controller-manager", Port: 10261,
		Controllers: []controller.Descriptor{descriptor("foo", "foo"), descriptor("icecream", "icecream"), summary}}
}

// TestWrongValues tries each wrong value alone: the command must reject it and name the flag.
func TestWrongValues(t *testing.T) {
	places := newPlaces(t)
	for flag, values := range wrong {
		for _, value := range values {
			arg := "--" + flag + "=" + value
			args := append(places.base(), arg)
			if err := places.complete(t, args); !mentions(err, nameOf(arg)) || complaintAbout(args, err) != "" {
				t.Errorf("%.200q is not rejected by name: %v", arg, err)
			}
		}
	}
}

// FuzzCommandLine tries arguments, separated by newlines. Each flag of the command is a seed,
// so that the fuzzer finds them all.
func FuzzCommandLine(f *testing.F) {
	places := newPlaces(f)
	program := manyFlags()
	newCommand(program, program.options()).Flags().VisitAll(func(flag *pflag.Flag) {
		f.Add("--" + flag.Name + "=" + flag.DefValue)
	})
	for _, args := range []string{"", "-kubeconfig=x", "--", "foo", "-vh", "--v=3\n-v\n-3", "-", "---", "--=", "--controllers", "-h", "help\nstatus", "__complete\n--"} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := append(places.base(), strings.Split(line, "\n")...)
		if complaint := complaintAbout(args, places.complete(t, args)); complaint != "" {
			t.Errorf("%q: %s", args, complaint)
		}
	})
}

// complete does what the command does with its arguments before it starts anything.
func (p places) complete(t *testing.T, args []string) error {
	t.Helper()
	program := manyFlags()
	o := program.options()
	command := newCommand(program, o)
	command.RemoveCommand(command.Commands()...) // subcommands have other flags
	command.SilenceErrors = true
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	command.SetArgs(args)
	command.SetContext(t.Context())
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.Validate(); err != nil || endless(o) {
			return err
		}
		if serving := o.Server.SecureServing; serving.BindPort != 0 {
			serving.Listener = listener{}                     // the same without opening the port
			serving.ServerCert.FixtureDirectory = p.directory // generates the certificate only once
		}
		_, err := o.Config(cmd.Context())
		return err
	}
	return command.Execute()
}

// complaintAbout says what is wrong with a rejection, or returns "". A rejected flag must have
// been given, because the defaults are valid.
func complaintAbout(args []string, err error) string {
	if err == nil {
		return ""
	}
	refusals := []error{err}
	if invalid := (options.InvalidFlags)(nil); errors.As(err, &invalid) {
		refusals = invalid
	}
	for _, refusal := range refusals {
		if refusal.Error() == "" {
			return "rejected without a reason"
		}
		named := strings.Contains(refusal.Error(), "takes no arguments") || strings.Contains(refusal.Error(), "unknown command")
		for _, arg := range args {
			named = named || mentions(refusal, nameOf(arg)) || mentionsLetter(refusal, arg)
		}
		if !named {
			return "names none of the given flags: " + strconv.Quote(refusal.Error())
		}
	}
	return ""
}

// nameOf returns the name of the flag in an argument, with its dashes, or "".
func nameOf(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	if !strings.HasPrefix(name, "-") {
		return ""
	}
	return name
}

// mentions reports whether the error has the name of a flag as a word, possibly quoted or
// without its dashes.
func mentions(err error, flag string) bool {
	if err == nil || flag == "" {
		return false
	}
	if strings.Trim(flag, "-") == "" {
		return strings.Contains(err.Error(), flag)
	}
	name := strings.TrimLeft(flag, "-")
	if strings.Contains(err.Error(), strconv.Quote(name)) || strings.Contains(err.Error(), strconv.Quote(flag)) {
		return true
	}
	for rest := err.Error(); ; {
		_, after, found := strings.Cut(rest, "-"+name)
		if !found {
			break
		}
		if after == "" || !strings.Contains("abcdefghijklmnopqrstuvwxyz0123456789-", after[:1]) {
			return true
		}
		rest = after
	}
	return false
}

// mentionsLetter reports whether the error has the name of one of several short flags in one
// argument, or the argument without its valid prefix.
func mentionsLetter(err error, arg string) bool {
	row, found := strings.CutPrefix(nameOf(arg), "-")
	if !found || row == "" || row[0] == '-' {
		return false
	}
	for i, letter := range row {
		if mentions(err, "-"+string(letter)) || strings.Contains(err.Error(), " in -"+row[i:]) {
			return true
		}
	}
	return false
}
