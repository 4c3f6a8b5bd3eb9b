// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
)

// idle is a controller that does nothing.
type idle struct{ name string }

func (c idle) Name() string { return c.name }

func (c idle) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// The controller map of a program has one descriptor per controller. The enabled controllers
// are determined from it alone.
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
	// "-foo" disables controllers but enables none: use *,-foo to enable all others
}

// newGuard makes a controller that maintains a PodDisruptionBudget for each StatefulSet.
func newGuard(_ context.Context, c *controller.Context) (controller.Controller, error) {
	sets := controller.For[*appsv1.StatefulSet](c)
	budgets := controller.Owns[*policyv1.PodDisruptionBudget](sets)
	return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
		set, ok := r.Object()
		if !ok {
			return nil // the garbage collector deletes the budget
		}
		_, err := budgets.Ensure(ctx, r, set.Name, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector, b.Spec.MaxUnavailable = set.Spec.Selector, ptr.To(intstr.FromInt32(1))
		})
		return err
	})
}

// A descriptor holds what a program must know of a controller before it is made.
func ExampleDescriptor() {
	guard := controller.Descriptor{Name: "guard-controller", Aliases: []string{"guard"}, New: newGuard, Workers: 2}
	fmt.Println(controller.NewRegistry(guard).Resolve("guard"))
	// Output: guard-controller <nil>
}
