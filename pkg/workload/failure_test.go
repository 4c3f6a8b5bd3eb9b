// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
)

var (
	exceededQuota = apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("exceeded quota: none"))
	errDown       = apierrors.NewInternalError(errors.New("failed calling webhook"))
)

// denial is the API server's answer to a write that a webhook denies.
func denial(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: `admission webhook "w" denied the request: ` + message,
	}}
}

// reject rejects writes that begin with prefix and whose body contains part.
func (e env) reject(prefix, part string, err error) {
	e.BeforeWrite(func(write string, r *http.Request) error {
		if !strings.HasPrefix(write, prefix) {
			return nil
		}
		body, readErr := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if readErr != nil || !strings.Contains(string(body), part) {
			return readErr
		}
		return err
	})
}

// count returns the number of writes since they were last taken that begin with prefix.
func (e env) count(prefix string) (n int) {
	for _, w := range e.Writes() {
		if strings.HasPrefix(w, prefix) {
			n++
		}
	}
	return n
}

// TestReconcileDistinguishesDeniedAndFailedWrites checks what the status says of a failing write, beside the
// state of the Deployment. How the library classifies and retries errors is tested there.
func TestReconcileDistinguishesDeniedAndFailedWrites(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		denied  bool
		message string // after "creating Deployment default/example-web "
	}{
		"denied": {exceededQuota, true, "was denied: " + exceededQuota.Error()},
		"failed": {errDown, false, "keeps failing: the API server answers 500: " + errDown.Error()},
	} {
		for verb, doing := range map[string]string{"create": "creating", "patch": "patching"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				run(t, func(t *testing.T, e env) {
					if verb == "create" {
						e.reject(createDeployment, "", test.err)
						e.Create(example())
					} else {
						e.serve()
						e.reject(patchDeployment, "", test.err)
						e.change(withReplicas(3))
						e.rollOut(func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 })
					}
					message := doing + " Deployment default/example-web " + test.message
					step := func(until time.Duration, condition, reason string) {
						t.Helper()
						time.Sleep(until - time.Millisecond)
						if test.denied {
							condition, reason = "Stalled", "WriteDenied"
						}
						c := e.condition(condition)
						if reason == "" {
							if ready := e.condition("Ready"); ready.ObservedGeneration == e.foo().Generation {
								t.Errorf("Ready = %+v, want no status for a write that may soon succeed", ready)
							}
							return
						}
						if c.Status != "True" || c.Reason != reason || c.Message != message {
							t.Errorf("%s = %+v, want %s: %s", condition, c, reason, message)
						}
						if s := e.foo().Status; verb == "patch" && s.AvailableReplicas != 1 || verb == "create" && s.Replicas != 0 {
							t.Errorf("status %+v, want the state of the Deployment", s)
						}
					}
					step(9*time.Second, "", "")
					step(40*time.Second, "Reconciling", "WriteFailing")
					step(30*time.Second, "Stalled", "WriteFailed")
					if test.denied {
						e.wantEvents("Warning WriteDenied " + message)
					} else {
						e.wantEvents("Warning WriteFailing "+message, "Warning WriteFailed "+message)
					}
					e.BeforeWrite(nil)
					e.forget()
					e.pass(time.Minute)
					e.wantWrites(verb+" deployments.apps default/example-web", patchStatus)
					if c := e.condition("Reconciling"); c.Reason != "Progressing" {
						t.Errorf("Reconciling = %+v, want it to be Progressing", c)
					}
				})
			})
		}
	}
}

// TestDeniedImageHoldsBackNothingElse denies an image. In the meantime the replicas in the spec change.
func TestDeniedImageHoldsBackNothingElse(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve(withImage("nginx:1.28"))
		e.reject(patchDeployment, "evil", denial("image evil is not allowed"))
		for _, replicas := range []int32{3, 5, 8} {
			e.change(func(f *samplev1alpha1.Foo) { f.Spec.Image, f.Spec.Replicas = "evil", &replicas })
			e.pass(10 * time.Second)
			if got := *e.deployment().Spec.Replicas; got != replicas {
				t.Errorf("%d replicas, want %d: only the image is denied", got, replicas)
			}
			stalled := e.condition("Stalled")
			if stalled.Reason != "WriteDenied" || !strings.Contains(stalled.Message, "image evil is not allowed") {
				t.Errorf("Stalled = %+v, want the denial", stalled)
			}
		}
		e.pass(5 * time.Minute)
		e.Writes()
		e.pass(10 * time.Minute)
		if n := e.count("patch deployments"); n < 10 || n > 21 {
			t.Errorf("%d tries in 10 minutes, want about one in 30 s", n)
		}
		e.BeforeWrite(nil)
		e.pass(time.Minute)
		if got := e.deployment().Spec.Template.Spec.Containers[0].Image; got != "evil" {
			t.Errorf("image %s once it is allowed, want evil", got)
		}
	})
}

// TestDriftBesideDeniedImageIsCorrected scales the Deployment while its image is denied.
func TestDriftBesideDeniedImageIsCorrected(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve(withImage("nginx:1.28"))
		e.reject(patchDeployment, "evil", denial("no"))
		e.change(withImage("evil"))
		e.pass(5 * time.Minute)
		e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
		e.pass(10 * time.Second)
		if got := *e.deployment().Spec.Replicas; got != 1 {
			t.Errorf("%d replicas, want 1", got)
		}
	})
}

// TestFailingWriteOfBothFieldsBecomesFailed fails the write of both fields. Fields are tried one by one only
// after a denial.
func TestFailingWriteOfBothFieldsBecomesFailed(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		e.reject(patchDeployment, "", errDown)
		e.change(func(f *samplev1alpha1.Foo) { f.Spec.Image, f.Spec.Replicas = "nginx:1.29", ptr.To[int32](9) })
		for i := range 60 { // which enqueue the object
			e.rollOut(func(d *appsv1.Deployment) { d.Annotations = map[string]string{"touched": time.Now().String()} })
			time.Sleep(time.Second)
			if c := e.condition("Stalled"); i < 50 && c.Status == "True" {
				t.Fatalf("Stalled = %+v after %d s", c, i)
			}
		}
		e.pass(5 * time.Second)
		if c := e.condition("Stalled"); c.Reason != "WriteFailed" {
			t.Errorf("Stalled = %+v, want WriteFailed", c)
		}
	})
}

// TestChangedDeploymentLiftsDenial denies a correction. Another user then changes the Deployment's spec, so that
// the correction is another one.
func TestChangedDeploymentLiftsDenial(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		e.serve()
		invalid := field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "no")}
		e.reject(patchDeployment, "", apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), deploymentName,
			invalid))
		e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](9) })
		e.pass(30 * time.Minute) // the next try is due in up to 5 minutes
		e.BeforeWrite(nil)
		e.rollOut(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
		e.pass(2 * time.Second)
		if got := *e.deployment().Spec.Replicas; got != 1 {
			t.Errorf("%d replicas, want 1", got)
		}
	})
}

// TestTerminatingNamespaceGetsNoDeployment creates an object whose namespace is being deleted.
func TestTerminatingNamespaceGetsNoDeployment(t *testing.T) {
	run(t, func(t *testing.T, e env) {
		going := apierrors.NewForbidden(appsv1.Resource("deployments"), deploymentName, errors.New("because it is being terminated"))
		going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		e.reject(createDeployment, "", going)
		e.Create(example())
		e.pass(5 * time.Minute)
		if c := e.condition("Reconciling"); c.Reason != "WaitingForDeletion" || !strings.Contains(c.Message, `namespace "default" is being deleted`) {
			t.Errorf("Reconciling = %+v, want it to wait for the deletion", c)
		}
		e.wantEvents()
		if n := e.count("create"); n > 3 {
			t.Errorf("%d writes in 5 minutes, want one or one for each call", n)
		}
	})
}
