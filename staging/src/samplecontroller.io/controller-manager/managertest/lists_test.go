// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// deployingProgram has a controller that owns a Deployment for each ConfigMap. It sets a container with
// an image, a variable, and one port number for each protocol in the ConfigMap.
func deployingProgram() manager.Program {
	return syncing(func(c *controller.Context) (controller.Controller, error) {
		configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("test=ensure"))
		deployments := controller.Owns[*appsv1.Deployment](configMaps)
		return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
			m, ok := r.Object()
			if !ok {
				return nil
			}
			_, err := deployments.Ensure(ctx, r, m.Name, func(d *appsv1.Deployment) {
				labels := map[string]string{"app": m.Name}
				d.Spec.Selector, d.Spec.Replicas = &metav1.LabelSelector{MatchLabels: labels}, ptr.To[int32](1)
				d.Spec.Template.Labels = labels
				setContainer(&d.Spec.Template.Spec, m.Data)
			})
			return err
		})
	})
}

// setContainer sets what the controller determines in its container, and leaves everything else alone.
func setContainer(pod *corev1.PodSpec, data map[string]string) {
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "app" })
	if i < 0 {
		i = len(pod.Containers)
		pod.Containers = append(pod.Containers, corev1.Container{Name: "app"})
	}
	app := &pod.Containers[i]
	app.Image = data["image"]
	env := slices.IndexFunc(app.Env, func(v corev1.EnvVar) bool { return v.Name == "MODE" })
	if env < 0 {
		env = len(app.Env)
		app.Env = append(app.Env, corev1.EnvVar{Name: "MODE"})
	}
	app.Env[env].Value = data["mode"]
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		is := func(p corev1.ContainerPort) bool { return p.ContainerPort == 53 && p.Protocol == protocol }
		switch has := slices.ContainsFunc(app.Ports, is); {
		case data[string(protocol)] == "":
			app.Ports = slices.DeleteFunc(app.Ports, is)
		case !has:
			app.Ports = append(app.Ports, corev1.ContainerPort{ContainerPort: 53, Protocol: protocol})
		}
	}
}

// described returns the containers without defaults of the API server.
func described(e *Env, ns string) []corev1.Container {
	e.t.Helper()
	d, _ := Get[*appsv1.Deployment](e, ns, "a")
	var containers []corev1.Container
	for _, c := range d.Spec.Template.Spec.Containers {
		containers = append(containers, corev1.Container{Name: c.Name, Image: c.Image, Env: c.Env, Ports: c.Ports})
	}
	return containers
}

// TestListsOfOthersSurvive extends the lists of a Deployment as other programs do. Its ports differ by
// the protocol only.
func TestListsOfOthersSurvive(t *testing.T) {
	const ns, patch = "ensure-lists", "patch deployments.apps ensure-lists/a"
	runAnywhere(t, deployingProgram(), func(t *testing.T, e *Env) {
		e.Create(owner(ns, map[string]string{"image": "v1", "mode": "a", "UDP": "yes"}))
		e.Settle()
		expect(t, "writes", e.Writes(), "create deployments.apps ensure-lists/a")
		Update(e, ns, "a", func(d *appsv1.Deployment) {
			pod := &d.Spec.Template
			pod.Annotations = map[string]string{"restarted": "at"}
			app := &pod.Spec.Containers[0]
			app.Env = slices.Insert(app.Env, 0, corev1.EnvVar{Name: "OTHER", Value: "b"})
			app.Ports = slices.Insert(app.Ports, 0, corev1.ContainerPort{ContainerPort: 80, Protocol: corev1.ProtocolTCP})
			pod.Spec.Containers = slices.Insert(pod.Spec.Containers, 0, corev1.Container{Name: "sidecar", Image: "s"})
		})
		e.Settle()
		expect(t, "writes after a change by others", e.Writes())

		port := func(n int32, protocol corev1.Protocol) corev1.ContainerPort {
			return corev1.ContainerPort{ContainerPort: n, Protocol: protocol}
		}
		for _, step := range []struct {
			data  map[string]string
			ports []corev1.ContainerPort
		}{
			{map[string]string{"image": "v2", "mode": "a", "UDP": "yes"}, []corev1.ContainerPort{port(80, "TCP"), port(53, "UDP")}},
			{map[string]string{"image": "v2", "mode": "c", "UDP": "yes", "TCP": "yes"},
				[]corev1.ContainerPort{port(80, "TCP"), port(53, "UDP"), port(53, "TCP")}},
			{map[string]string{"image": "v3", "mode": "c", "TCP": "yes"}, []corev1.ContainerPort{port(80, "TCP"), port(53, "TCP")}},
		} {
			Update(e, ns, "a", func(m *corev1.ConfigMap) { m.Data = step.data })
			e.Settle()
			expect(t, "writes", e.Writes(), patch)
			want := []corev1.Container{{Name: "sidecar", Image: "s"}, {
				Name: "app", Image: step.data["image"], Ports: step.ports,
				Env: []corev1.EnvVar{{Name: "OTHER", Value: "b"}, {Name: "MODE", Value: step.data["mode"]}},
			}}
			if diff := cmp.Diff(want, described(e, ns)); diff != "" {
				t.Errorf("containers (-want +got):\n%s", diff)
			}
		}
		if d, _ := Get[*appsv1.Deployment](e, ns, "a"); d.Spec.Template.Annotations["restarted"] != "at" {
			t.Errorf("annotations of the Pods %v, want that of others", d.Spec.Template.Annotations)
		}
	}, "--namespace="+ns)
}

// conditionProgram has a controller that sets one condition of each Widget.
func conditionProgram() manager.Program {
	p := ensureProgram()
	p.Controllers = []controller.Descriptor{{
		Name: "test-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			widgets := controller.For[*Widget](c, controller.MayPatchStatus())
			return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
				w, ok := r.Object()
				if !ok {
					return nil
				}
				w.Status.Image = w.Spec.Containers[0].Image
				meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
					Type: "Ready", Status: metav1.ConditionTrue, Reason: "Seen", Message: w.Status.Image,
					LastTransitionTime: metav1.Unix(0, 0),
				})
				return r.UpdateStatus(ctx, w)
			})
		},
	}}
	return p
}

// TestForeignConditionsSurvive has a condition of another controller before that of this one, with a
// field that the type does not know.
func TestForeignConditionsSurvive(t *testing.T) {
	const ns = "ensure-conditions"
	const foreign = `{"type":"Foreign","status":"True","reason":"Other","message":"","lastTransitionTime":"2020-01-01T00:00:00Z","extra":{"a":1}}`
	ready := func(image string) string {
		return `{"type":"Ready","status":"True","reason":"Seen","message":"` + image + `","lastTransitionTime":"1970-01-01T00:00:00Z"}`
	}
	runAnywhere(t, conditionProgram(), func(t *testing.T, e *Env) {
		e.Create(widget(ns, "v1"))
		e.Settle()
		expectWidget(e, ns, "status", `{"image":"v1","ports":0,"conditions":[`+ready("v1")+`]}`)
		patchWidget(e, ns, `{"status":{"summary":"of others","conditions":[`+foreign+`,`+ready("v1")+`]}}`, "status")
		e.Settle()
		e.Writes()
		Update(e, ns, "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		e.Settle()
		expect(t, "writes", e.Writes(), "patch widgets/status.test.example.com ensure-conditions/a")
		expectWidget(e, ns, "status", `{"image":"v2","ports":0,"summary":"of others","conditions":[`+foreign+`,`+ready("v2")+`]}`)
	}, "--namespace="+ns)
}
