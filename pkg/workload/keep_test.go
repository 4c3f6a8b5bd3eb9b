// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	workloadv1alpha1 "samplecontroller.io/api/workload/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
	"samplecontroller.io/controller-manager/managertest"
)

// TestDeploymentThatIsCachedSinceDecision carries out a decision to create a Deployment that the cache has by
// now. Its status is told.
func TestDeploymentThatIsCachedSinceDecision(t *testing.T) {
	kind := Adapter[*samplev1alpha1.Foo]{
		GroupVersionKind: fooKind,
		Spec:             func(f *samplev1alpha1.Foo) Spec { return Spec{DeploymentName: f.Spec.DeploymentName} },
		Status:           func(f *samplev1alpha1.Foo) *workloadv1alpha1.Status { return &f.Status.Status },
	}
	newController := func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		w := New(c, kind)
		return w.Objects.Reconcile(func(ctx context.Context, r *controller.Request[*samplev1alpha1.Foo]) error {
			f, ok := r.Object()
			if !ok {
				return nil
			}
			o := kind.Owner(f)
			d, err := w.write(ctx, r, o, decision{Create: o.newDeployment()})
			if err != nil || d == nil || d.UID == "" {
				t.Errorf("write() = %v, %v, want a Deployment", d, err)
				return err
			}
			return w.writeStatus(ctx, r, f, State{Deployment: d})
		})
	}
	p := manager.Program{
		Name: "sample-controller-manager", Scheme: samplescheme.AddToScheme,
		Controllers: []controller.Descriptor{{Name: "foo-controller", New: newController, Workers: 1}},
	}
	managertest.Run(t, p, func(t *testing.T, e *managertest.Env) {
		e.Create(&samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: samplev1alpha1.FooSpec{DeploymentName: "web"},
		})
		e.Settle()
		managertest.Update(e, "default", "a", func(f *samplev1alpha1.Foo) { f.Annotations = map[string]string{"again": "yes"} })
		e.Settle()
	})
}
