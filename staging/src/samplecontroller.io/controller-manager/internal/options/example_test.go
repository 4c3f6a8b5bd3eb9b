// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/options"
)

// configOf returns the configuration of a program with the controllers of registry.
func configOf(ctx context.Context, registry *controller.Registry, args []string) (*options.Config, error) {
	o := options.New("example-manager", 10263, registry)
	flags := pflag.NewFlagSet("example-manager", pflag.ContinueOnError)
	for _, section := range o.Flags().FlagSets {
		flags.AddFlagSet(section)
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err // it lists all invalid flags
	}
	return o.Config(ctx)
}

// Package manager does this for a command.
func Example() {
	registry := controller.NewRegistry(controller.Descriptor{
		Name: "foo-controller", Workers: 5,
		New: func(context.Context, *controller.Context) (controller.Controller, error) { return nil, nil },
	})
	_, err := configOf(context.Background(), registry, []string{"--concurrent-foo-syncs=0", "--controllers=bar"})
	fmt.Println(err)
	// Output:
	// invalid flags (2):
	//   --controllers: "bar" is not a known controller (known: foo-controller)
	//   --concurrent-foo-syncs: 0 is too few, must be at least 1; to disable the controller use --controllers=*,-foo-controller
}
