// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

// The cache has only parts of a Deployment. A patch must address the right container, and leave alone what
// the cache lacks.
func TestPatchChangesOnlyDeclaredFields(t *testing.T) {
	sidecar := corev1.Container{Name: "log", Image: "fluent-bit:4", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}}
	for name, inject := range map[string]func([]corev1.Container) []corev1.Container{
		"no sidecar":       func(c []corev1.Container) []corev1.Container { return c },
		"a sidecar before": func(c []corev1.Container) []corev1.Container { return slices.Insert(c, 0, sidecar) },
		"a sidecar behind": func(c []corev1.Container) []corev1.Container { return append(c, sidecar) },
		"a sidecar on both": func(c []corev1.Container) []corev1.Container {
			return append(slices.Insert(c, 0, sidecar), corev1.Container{Name: "z"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, e env) {
				e.serve()
				e.rollOut(func(d *appsv1.Deployment) {
					d.Labels = map[string]string{"team": "a"}
					d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
					pod := &d.Spec.Template.Spec
					pod.Containers[0].Args = []string{"-v"}
					pod.Containers = inject(pod.Containers)
				})
				e.pass(time.Second)
				e.forget()
				want := e.deployment()
				for i := range want.Spec.Template.Spec.Containers {
					if c := &want.Spec.Template.Spec.Containers[i]; c.Name == "nginx" {
						c.Image = "nginx:1.29"
					}
				}
				*want.Spec.Replicas = 4
				e.change(func(f *samplev1alpha1.Foo) { withImage("nginx:1.29")(f); withReplicas(4)(f) })
				e.pass(time.Second)
				e.wantWrites(patchDeployment, patchStatus)
				if diff := cmp.Diff(want.Spec, e.deployment().Spec); diff != "" {
					t.Errorf("unexpected spec (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestRewrittenImageIsReported makes admission rewrite images to a mirror.
func TestRewrittenImageIsReported(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.BeforeWrite(func(write string, r *http.Request) error {
			if write != patchDeployment {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			body = bytes.ReplaceAll(body, []byte(`"nginx:1.29"`), []byte(`"mirror.local/nginx:1.29"`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return err
		})
		e.change(withImage("nginx:1.29"))
		e.pass(time.Second)
		e.wantWrites(patchDeployment, patchStatus)
		if c := e.condition("Stalled"); c.Reason != "RewrittenByAdmission" || !strings.Contains(c.Message, `changed it to "mirror.local/nginx:1.29"`) {
			t.Errorf("condition %+v, want RewrittenByAdmission", c)
		}
		e.pass(4 * time.Minute)
		e.rollOut(ready)
		e.pass(time.Second)
		e.wantWrites() // although the Deployment has changed
		e.pass(time.Minute)
		e.wantWrites(patchDeployment)
		e.BeforeWrite(nil) // the webhook is gone
		e.pass(5 * time.Minute)
		e.wantWrites(patchDeployment, patchStatus)
	})
}

// While the Deployment of the new name cannot be created, the former one is kept as declared.
func TestDeniedCreationDoesNotStarveFormerDeployment(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.BeforeWrite(func(write string, _ *http.Request) error {
			if strings.HasPrefix(write, "create deployments") {
				return apierrors.NewForbidden(appsv1.Resource("deployments"), "new", errors.New("exceeded quota: small"))
			}
			return nil
		})
		e.change(func(f *samplev1alpha1.Foo) { withDeployment("new")(f); withReplicas(3)(f) })
		e.pass(time.Second)
		if c := e.condition("Stalled"); c.Reason != "WriteDenied" || !strings.Contains(c.Message, `the former Deployment "example-web" is kept`) {
			t.Errorf("condition %+v, want WriteDenied with the name of the former Deployment", c)
		}
		if got := *e.deployment().Spec.Replicas; got != 3 {
			t.Errorf("the former Deployment has %d replicas, want 3", got)
		}
		e.BeforeWrite(nil)
		e.forget()
		e.pass(time.Minute)
		e.wantWrites("create deployments.apps default/new", patchStatus)
	})
}
