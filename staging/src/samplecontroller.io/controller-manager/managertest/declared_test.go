// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/controller"
)

// TestDeclaredRules has a controller that declares all that it needs.
func TestDeclaredRules(t *testing.T) {
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c, controller.MayPatchStatus())
		controller.Owns[*corev1.Secret](sets, controller.MayDelete())
		controller.Refers[*corev1.ConfigMap](sets, func(*appsv1.StatefulSet) []string { return nil })
		sets.Finalize("test.example.com/a", func(context.Context, *controller.Request[*appsv1.StatefulSet]) error { return nil })
		return sets.Reconcile(func(context.Context, *controller.Request[*appsv1.StatefulSet]) error { return nil })
	})
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	want := []rbacv1.PolicyRule{
		rule("", "configmaps", "list", "watch"),
		rule("", "secrets", "create", "delete", "list", "patch", "watch"),
		rule("apps", "statefulsets", "list", "patch", "watch"),
		rule("apps", "statefulsets/finalizers", "update"),
		rule("apps", "statefulsets/status", "patch"),
	}
	Run(t, p, func(t *testing.T, e *Env) {
		if diff := cmp.Diff(want, e.context.Rules()); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
	})
}

// TestUndeclaredWriteIsRefused calls each write that needs an option without it.
func TestUndeclaredWriteIsRefused(t *testing.T) {
	var errs []error
	p := syncing(func(c *controller.Context) (controller.Controller, error) {
		sets := controller.For[*appsv1.StatefulSet](c)
		secrets := controller.Owns[*corev1.Secret](sets)
		return sets.Reconcile(func(ctx context.Context, r *controller.Request[*appsv1.StatefulSet]) error {
			set, ok := r.Object()
			if ok {
				errs = []error{r.Patch(ctx, set), r.UpdateStatus(ctx, set), r.Delete(ctx), secrets.Delete(ctx, r, "a")}
			}
			return nil
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(&appsv1.StatefulSet{ObjectMeta: configMapOf("ns", "a").ObjectMeta})
		e.Settle()
		expect(t, "writes", e.Writes())
		for i, want := range []string{
			"test-controller has not declared that it may patch statefulsets.apps: give For the option MayPatch",
			"test-controller has not declared that it may patch statefulsets/status.apps: give For the option MayPatchStatus",
			"test-controller has not declared that it may delete statefulsets.apps: give For the option MayDelete",
			"test-controller has not declared that it may delete secrets: give Owns the option MayDelete",
		} {
			if i >= len(errs) || errs[i] == nil || !strings.Contains(errs[i].Error(), want) {
				t.Errorf("%v, want %q as number %d", errors.Join(errs...), want, i)
			}
		}
	})
}
