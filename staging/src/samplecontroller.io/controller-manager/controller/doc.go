// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller defines controllers, describes them as data, and selects the enabled
// ones.
//
//	func newGuard(_ context.Context, c *controller.Context) (controller.Controller, error) {
//		sets := controller.For[*appsv1.StatefulSet](c)
//		budgets := controller.Owns[*policyv1.PodDisruptionBudget](sets)
//		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
//			set, ok := r.Object()
//			if !ok {
//				return nil // the garbage collector deletes the budget
//			}
//			_, err := budgets.Ensure(ctx, r, set.Name, func(b *policyv1.PodDisruptionBudget) {
//				b.Spec.Selector, b.Spec.MaxUnavailable = set.Spec.Selector, ptr.To(intstr.FromInt32(1))
//			})
//			return err
//		})
//	}
//
// A controller is a function from an object to what should be. [For] sets the kind of the objects, and
// [Builder.Reconcile] the function. What it needs is declared between them: [Owns] for the objects that it
// makes, [Refers], [Watch] and [WatchAs] for those that it only reads, [Builder.Finalize] for what it has
// to clean up. A declaration that would have no effect ends the program at its start, with a sentence.
// What shows only with an object makes that object fail, or the controller Degraded. Every write carries
// the version that it was decided on. A new leader confirms an object with the API server before its
// first write for it. A controller that does not fit can use [Context.Loop], with the key and client-go
// alone, or implement [Controller] itself.
//
// A [Controller] is made once and run once for each term of leadership. A [Descriptor] holds
// everything that is known of a controller before it is made: its name and aliases, its
// constructor, its flags and its permissions. A [Registry] is the controller map of a program.
// Help texts, the selection by flag and RBAC manifests are derived from it, without a cluster.
//
// A constructor gets a [Context], which belongs to its controller. The Context provides
// configurations for clients, the informers of the process, a recorder of Events, and loops
// with the settings of the program. Writes of its clients are counted, and rejected unless the
// process leads. A constructor that fails or panics stops only its own controller; one that
// misuses the library ends the program: see [Registry.Build]. A [Shared] holds what the controllers of
// a process share. Package manager makes it.
package controller
