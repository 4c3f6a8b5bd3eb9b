// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	"samplecontroller.io/controller-manager/controller"
)

// idle is a controller that has nothing to do.
type idle struct{ name string }

func (c idle) Name() string { return c.name }

func (c idle) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// The controller map of a program is one line for each controller. What is enabled
// is decided from it alone.
func ExampleRegistry_Enabled() {
	newIdle := func(name string) controller.Constructor {
		return func(context.Context, *controller.Context) (controller.Controller, error) { return idle{name}, nil }
	}
	registry := controller.NewRegistry(
		controller.Descriptor{Name: "foo-controller", Aliases: []string{"foo"}, New: newIdle("foo-controller"), Workers: 10},
		controller.Descriptor{Name: "bar-controller", Aliases: []string{"bar"}, New: newIdle("bar-controller"), Workers: 5},
		controller.Descriptor{Name: "baz-controller", Aliases: []string{"baz"}, New: newIdle("baz-controller"), Workers: 5, DisabledByDefault: true},
	)

	fmt.Println(registry.Enabled([]string{"*"}))
	fmt.Println(registry.Enabled([]string{"*", "baz", "-foo"}))
	_, err := registry.Enabled([]string{"-foo"})
	fmt.Println(err)

	// Output:
	// [bar-controller foo-controller] <nil>
	// [bar-controller baz-controller] <nil>
	// "-foo" only disables, and so enables no controller: to enable all others write *,-foo
}
