// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller says what a controller is, describes controllers as data,
// and decides which of them are enabled.
//
//	func newGuard(_ context.Context, c *controller.Context) (controller.Controller, error) {
//		sets := controller.For[*appsv1.StatefulSet](c)
//		budgets := controller.Owns[*policyv1.PodDisruptionBudget](sets)
//		return sets.Sync(func(ctx context.Context, s *controller.Sync[*appsv1.StatefulSet]) error {
//			set, ok := s.Object()
//			if !ok {
//				return nil // the garbage collector deletes the budget
//			}
//			_, err := budgets.Ensure(ctx, s, set.Name, func(b *policyv1.PodDisruptionBudget) {
//				b.Spec.Selector, b.Spec.MaxUnavailable = set.Spec.Selector, ptr.To(intstr.FromInt32(1))
//			})
//			return err
//		})
//	}
//
// A [Controller] is made once and run once for each term of leadership. A
// [Descriptor] tells all about it that can be told without making it: its name
// and aliases, how it is made, its flags, what it needs. A [Registry] is the controller map
// of a program. Help texts, selection by flag and RBAC manifests come from it
// alone, without a cluster.
//
// A constructor gets a [Context], which is bound to its controller: configs for clients
// whose writes pass only while the process leads and are counted, the informers of the
// process, a recorder of Events, and loops with the settings of the program. What the
// controllers of a process share is a [Process], which package manager makes.
//
// [For], [Owns] and [Kind.Sync] are for what most controllers do: own objects and write a
// status. A controller of another shape is a [Context.Loop], or whatever it likes to be.
package controller
