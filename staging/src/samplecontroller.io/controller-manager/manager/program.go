// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/misuse"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/testkit"
)

// Program is a controller manager: a command that hosts controllers in one process. A Program
// can be run by one command only, because its descriptors hold flag values.
type Program struct {
	// Name is the name of the command, Lease, certificate and user agents. It
	// is also the prefix of the metrics, with _ instead of -. It is a lower-case DNS label.
	Name string
	// Description is shown by --help. Optional.
	Description string
	// Port is the default of --secure-port. 0 disables serving.
	Port int
	// Controllers are all controllers of the program, at least one; --controllers selects among
	// them.
	Controllers []controller.Descriptor
	// Scheme adds custom kinds to a scheme. They are needed for Events about them, and for
	// [controller.For]. If it returns an error, the program does not start. Optional.
	Scheme func(*runtime.Scheme) error
}

// errLogged replaces an error that has been logged or printed already.
var errLogged = errors.New("already logged")

// Main runs the program with the arguments of the process until SIGINT, SIGTERM or SIGHUP. It
// returns the exit code: 0, 1 after an error, which it has reported, or 2 if the subcommand plan shows changes. A
// second signal ends the process at once. Call it once in a process, before anything else.
func Main(p Program) int {
	// Set this up first, so that a signal at any time leads to an orderly shutdown.
	return Execute(untilSignal(), p, os.Args[1:])
}

// Execute is like [Main], but with the given arguments, without the name of the program, and until
// ctx ends. A misuse of the library, such as two controllers of one name, is an error too: it is
// reported in one line.
func Execute(ctx context.Context, p Program, args []string) int {
	err := p.execute(ctx, args)
	if err == nil {
		return 0
	}
	if errors.Is(err, errWouldChange) {
		return 2
	}
	if !errors.Is(err, errLogged) {
		logs.ReportFailure(args, err)
	}
	return 1
}

// execute makes and runs the command.
func (p Program) execute(ctx context.Context, args []string) (err error) {
	defer returnMisuse(&err)
	command := NewCommand(p)
	command.SetArgs(args)
	command.SetContext(ctx)
	return cli.RunNoErrOutput(command)
}

// returnMisuse is deferred by a function that returns err. It sets err to the mistake in the
// program that the function panics with, which needs no stack. All other panics go on.
func returnMisuse(err *error) {
	switch value := recover().(type) {
	case nil:
	case *misuse.Error:
		*err = value
	default:
		panic(value)
	}
}

// Flags returns the flags of the program in the sections of --help, for a page that lists them. It
// panics if the name or a descriptor is invalid.
func (p Program) Flags() *cliflag.NamedFlagSets { return p.options().Flags() }

// options returns the default settings of the program. It panics if the name or a descriptor is
// invalid: see [controller.NewRegistry].
func (p Program) options() *options.Options {
	if problems := content.IsDNS1123Label(p.Name); len(problems) > 0 {
		panic(misuse.Errorf("the Name %q of the program is invalid: %s", p.Name, problems[0]))
	}
	if len(p.Controllers) == 0 {
		panic(misuse.Errorf("%s has no controllers", p.Name))
	}
	return options.New(p.Name, p.Port, controller.NewRegistry(p.Controllers...))
}

// parse returns the settings that the flags in args give.
func (p Program) parse(args []string) (*options.Options, error) {
	o, flags := p.options(), pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	return o, flags.Parse(args)
}

// complete reads the configuration file and checks all settings.
func complete(o *options.Options) error {
	if err := o.Complete(); err != nil {
		return err
	}
	return o.Validate()
}

func init() {
	testkit.Plan = func(ctx context.Context, program any, config *restclient.Config, args []string) (any, error) {
		p := program.(Program)
		o, err := p.parse(args)
		if err != nil {
			return nil, err
		}
		o.Client.Config = config
		if err := complete(o); err != nil {
			return nil, err
		}
		return p.plan(ctx, o, planOptions{timeout: time.Minute})
	}
	testkit.Configure = func(ctx context.Context, program any, config *restclient.Config, args []string) (
		run func(context.Context) error, enabled []string, err error) {
		p := program.(Program)
		o, err := p.parse(args)
		if err != nil {
			return nil, nil, err
		}
		o.Client.Config = config
		if err := complete(o); err != nil {
			return nil, nil, err
		}
		c, err := o.Config(ctx)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) error { return p.start(ctx, c) }, c.Enabled, nil
	}
}
