// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"
)

// program maintains a Secret for each ConfigMap.
var program = manager.Program{Name: "example-manager", Controllers: []controller.Descriptor{{
	Name: "example-controller", Workers: 2,
	New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c)
		secrets := controller.Owns[*corev1.Secret](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			if _, ok := r.Object(); !ok {
				return nil
			}
			_, err := secrets.Ensure(ctx, r, r.Key().Name, func(*corev1.Secret) {})
			return err
		})
	},
}}}

func TestExample(t *testing.T) {
	managertest.Run(t, program, func(t *testing.T, e *managertest.Env) {
		e.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}})
		e.Settle()
		if got, want := e.Writes(), []string{"create secrets ns/team"}; !slices.Equal(got, want) {
			t.Errorf("writes %q, want %q", got, want)
		}
	})
}
