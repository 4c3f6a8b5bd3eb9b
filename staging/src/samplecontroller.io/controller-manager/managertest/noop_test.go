// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// templateProgram has a controller that sets a whole Pod template, in which the API server has set defaults.
func templateProgram() manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		deployments := controller.Owns[*appsv1.Deployment](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			configMap, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := deployments.Ensure(ctx, r, configMap.Name, func(d *appsv1.Deployment) {
				labels := map[string]string{"app": configMap.Name}
				d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
				d.Spec.Template = corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: configMap.Data["image"]}}},
				}
			})
			return err
		})
	})
}

// TestPatchThatChangesNothingIsTold patches a template, and its defaults.
func TestPatchThatChangesNothingIsTold(t *testing.T) {
	const ns = "ensure-defaults"
	p := templateProgram()
	p.Name = "noop-manager"
	runAnywhere(t, p, func(t *testing.T, e *Env) {
		before := noOps(t)
		e.Create(owner(ns, map[string]string{"image": "v1"}))
		e.Settle()
		patch := "patch deployments.apps " + ns + "/a"
		expect(t, "writes", e.Writes(), "create deployments.apps "+ns+"/a", patch)
		if got := noOps(t) - before; got != 1 {
			t.Errorf("%v patches are counted, want 1", got)
		}
		Update(e, ns, "a", func(c *corev1.ConfigMap) { c.Data["image"] = "v2" })
		e.Settle()
		d, _ := Get[*appsv1.Deployment](e, ns, "a")
		if image := d.Spec.Template.Spec.Containers[0].Image; d.Generation != 2 || image != "v2" {
			t.Errorf("generation %d with image %s, want 2 with v2", d.Generation, image)
		}
		if got := noOps(t) - before; got != 2 {
			t.Errorf("%v patches are counted after a change, want 2", got)
		}
		log := e.logged()
		if strings.Count(log, "A patch changed nothing") != 1 || !strings.Contains(log, "/spec/template/spec/dnsPolicy") {
			t.Errorf("the log is %s, want one line that names the fields", log)
		}
	}, "--namespace="+ns)
}

// noOps returns the number of patches that noop-manager counts as without effect.
func noOps(t *testing.T) (total float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() == "noop_manager_writes_noop_total" {
			for _, metric := range family.Metric {
				total += metric.Counter.GetValue()
			}
		}
	}
	return total
}
