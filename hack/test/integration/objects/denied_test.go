// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestDeniedDeploymentIsReportedAndRetried makes the API server deny the Deployment of an
// object for a while. Denials by a quota and by a policy are tested in managertest, also on an API server.
func TestDeniedDeploymentIsReportedAndRetried(t *testing.T) {
	const (
		// deniedFor is how long to watch a denied object at least. mostAttempts is more than the
		// backoff makes in that time, and less than a hot loop makes.
		deniedFor    = 8 * time.Second
		mostAttempts = 8
	)
	framework.StartDaemon(t)
	for name, test := range map[string]struct {
		path, want string // in the API server's message
		same       bool   // the message is the same each time
	}{
		"webhook that denies":           {"/deny", "denied the request: no Deployments on Fridays", true},
		"webhook that denies as 404":    {"/deny-404", "denied the request: no Deployments on Fridays", true},
		"webhook that denies as 409":    {"/deny-409", "denied the request: no Deployments on Fridays", true},
		"webhook with changing reasons": {"/deny-changing", "denied the request: this is refusal", false},
	} {
		for _, k := range framework.Kinds {
			t.Run(k.Kind+", "+name, func(t *testing.T) {
				t.Parallel()
				ns := framework.NewNamespace(t)
				lift := denyByWebhook(t, ns, test.path, test.want)
				begin := time.Now()
				k.Create(t, ns, "a", 1)
				object := k.WaitCondition(t, ns, "a", "Stalled", "WriteDenied")
				if message := meta.FindStatusCondition(object.Status.Conditions, "Stalled").Message; !strings.Contains(message,
					test.want) {
					t.Errorf("message %q, want one with the API server's reason, %q", message, test.want)
				}
				time.Sleep(time.Until(begin.Add(deniedFor)))
				var calls map[string]int
				clustertest.WaitUntil(t, "the Deployment is tried again", func(context.Context) error {
					if calls = k.Calls(t, ns); calls["create deployments"] < 2 {
						return fmt.Errorf("calls: %v", calls)
					}
					return nil
				})
				lasted := time.Since(begin)
				most := mostAttempts * int(lasted/deniedFor)
				if got := calls["create deployments"]; got > most {
					t.Errorf("%d attempts to create the Deployment in %v, want at most %d", got, lasted, most)
				}
				if got := calls[k.PatchStatus()]; got > 1 && test.same || got > most {
					t.Errorf("%d status writes while nothing changed", got)
				}
				wantEvents(t, k, ns, "Warning WriteDenied")

				lift()
				clustertest.WaitUntil(t, "Deployments are allowed", func(ctx context.Context) error { return tryDeployment(ctx, ns) })
				lifted := time.Now()
				k.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
				t.Logf("%s: %d attempts in %v; converged %v after it was allowed", name, calls["create deployments"],
					lasted.Round(time.Millisecond), time.Since(lifted).Round(time.Millisecond))
				if owner := metav1.GetControllerOf(framework.Deployment(t, ns, "a")); owner == nil || owner.UID != object.UID {
					t.Errorf("the Deployment is owned by %v", owner)
				}
				wantEvents(t, k, ns, "Warning WriteDenied")
			})
		}
	}
}

// TestFailingWebhookIsReported makes each creation of a Deployment fail for a while, with errors that may pass. How
// the report goes on is tested in managertest.
func TestFailingWebhookIsReported(t *testing.T) {
	framework.StartDaemon(t)
	for name, test := range map[string]struct{ path, want string }{
		"webhook that denies as 500":         {"/deny-500", "denied the request: no Deployments on Fridays"},
		"webhook that denies as 503":         {"/deny-503", "denied the request: no Deployments on Fridays"},
		"webhook that fails":                 {"/fail", "failed calling webhook"},
		"webhook that answers too late":      {"/hang", "failed calling webhook"},
		"webhook that closes the connection": {"/hang-up", "failed calling webhook"},
		"webhook that is gone":               {"", "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := framework.NewNamespace(t)
			lift := denyByWebhook(t, ns, test.path, test.want)
			framework.Foos.Create(t, ns, "a", 1)
			object := framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "WriteFailing")
			message := meta.FindStatusCondition(object.Status.Conditions, "Reconciling").Message
			if !strings.Contains(message, "creating Deployment "+ns+"/a keeps failing: ") || !strings.Contains(message, test.want) {
				t.Errorf("message %q, want one with the write and %q", message, test.want)
			}
			lift()
			framework.Foos.WaitReplicas(t, ns, "a", 1)
			framework.Foos.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
		})
	}
}

// TestDeniedImageDoesNotStopScaling denies one of two fields of an existing Deployment.
func TestDeniedImageDoesNotStopScaling(t *testing.T) {
	framework.EachKind(t, func(t *testing.T, k framework.Kind) {
		ns := framework.NewNamespace(t)
		framework.StartDaemon(t)
		k.Create(t, ns, "a", 1)
		k.WaitCondition(t, ns, "a", "Reconciling", "Progressing")
		framework.BeReady(t, ns, "a")
		k.WaitCondition(t, ns, "a", "Ready", "Available")
		image := func() string { return framework.Deployment(t, ns, "a").Spec.Template.Spec.Containers[0].Image }
		before := image()
		lift := denyByPolicy(t, ns, `object.spec.template.spec.containers.all(c, c.image != "evil")`)
		clustertest.WaitUntil(t, "the image is denied", func(ctx context.Context) error {
			_, err := framework.Cluster().Kubectl(ctx, "-n", ns, "set", "image", "deployment/a", "nginx=evil", "--dry-run=server")
			if err == nil {
				return errors.New("allowed")
			}
			return nil
		})

		k.Patch(t, ns, "a", `{"spec":{"image":"evil","replicas":3}}`)
		k.WaitReplicas(t, ns, "a", 3)
		framework.BeReady(t, ns, "a")
		object := k.WaitCondition(t, ns, "a", "Stalled", "WriteDenied")
		if c := meta.FindStatusCondition(object.Status.Conditions, "Ready"); c.Status != metav1.ConditionFalse ||
			!strings.Contains(c.Message, "no Deployments on Fridays") {
			t.Errorf("Ready = %+v, want False with the API server's reason", c)
		}
		framework.Kubectl(t, "-n", ns, "scale", k.Singular, "a", "--replicas=4")
		k.WaitReplicas(t, ns, "a", 4)
		framework.Kubectl(t, "-n", ns, "scale", "deployment", "a", "--replicas=9")
		k.WaitReplicas(t, ns, "a", 4)
		if got := image(); got != before {
			t.Errorf("image %q, want still %q", got, before)
		}

		lift()
		clustertest.WaitUntil(t, "the image is as declared", func(context.Context) error {
			if got := image(); got != "evil" {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
		framework.BeReady(t, ns, "a")
		k.WaitCondition(t, ns, "a", "Ready", "Available")
	})
}

// tryDeployment tries to create a Deployment as a dry run.
func tryDeployment(ctx context.Context, ns string) error {
	labels := map[string]string{"app": "try"}
	_, err := framework.Kube().AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "try"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
