// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/testkit"
)

// TestHangingWrite gets no answer to a write. The second try may take as long as the sync.
func TestHangingWrite(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", errHang)
		e.Create(widget("ns", "v1"))
		sleep(5 * time.Minute)
		all, message := conditions(e, "ns")
		expect(t, "conditions", all, "Stalled WriteFailed")
		const want = "creating Secret ns/a keeps failing: no answer within --write-timeout; an admission webhook for secrets may hang"
		if message != want {
			t.Errorf("message %q, want %q", message, want)
		}
		if n := count(e.Writes(), statusPatch); n < 1 || n > 2 {
			t.Errorf("%d statuses are written, want one, or two if WriteFailing came first", n)
		}
		if events := e.Events(); len(events) < 1 || len(events) > 2 {
			t.Errorf("Events %q, want one or two", events)
		}
		e.BeforeWrite(nil)
		sleep(2 * time.Minute)
		all, _ = conditions(e, "ns")
		expect(t, "conditions after the cause is gone", all)
	})
}

// TestChangedObjectIsTriedAtOnce changes the spec after a denial.
func TestChangedObjectIsTriedAtOnce(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", errQuota)
		e.Create(widget("ns", "v1"))
		sleep(5 * time.Minute)
		e.BeforeWrite(nil)
		e.Writes()
		Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		sleep(0)
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
	})
}

// TestFailuresOfAnotherTerm loses the lead after a denial.
func TestFailuresOfAnotherTerm(t *testing.T) {
	Run(t, failureProgram(), func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", errQuota)
		e.Create(widget("ns", "v1"))
		sleep(5 * time.Minute)
		e.LoseLead()
		e.BeforeWrite(nil)
		e.Writes()
		e.Lead()
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
	})
}

// TestMissingPermissionIsNotReportedForEachObject answers like the authorizer.
func TestMissingPermissionIsNotReportedForEachObject(t *testing.T) {
	runFailing(t, failureProgram(showing), func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", apierrors.NewForbidden(secretsResource, "", errors.New(
			`User "me" cannot create resource "secrets" in API group "" in the namespace "ns"`)))
		e.Create(widget("ns", "v1"))
		sleep(5 * time.Minute)
		expect(t, "Events", e.Events())
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all)
		if testkit.Denied(e.context) == nil {
			t.Error("the controller lacks nothing, want the permission")
		}
	})
}

// TestFailingWriteOfEachVerb denies one write after another of an object.
func TestFailingWriteOfEachVerb(t *testing.T) {
	finalizing := func(b *controller.Builder[*Widget]) {
		b.Finalize("example.com/a", func(context.Context, *controller.Request[*Widget]) error { return nil })
	}
	for name, test := range map[string]struct {
		rejected, message string
		change            func(*Env)
		hidden            bool // the status cannot show it
	}{
		"patch": {"patch secrets ns/a", "patching Secret ns/a was denied", func(e *Env) {
			Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		}, false},
		"delete": {"delete secrets ns/a", "deleting Secret ns/a was denied", func(e *Env) {
			Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers = nil })
		}, false},
		"status": {statusPatch, "writing the status of Widget ns/a was denied", func(e *Env) {
			Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = "v2" })
		}, true},
		"finalizer": {"patch widgets.test.example.com ns/a", "patching Widget ns/a was denied", func(e *Env) {
			e.Delete(widget("ns", ""))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			runFailing(t, failureProgram(showing, finalizing), func(t *testing.T, e *Env) {
				e.Create(widget("ns", "v1"))
				e.Settle()
				e.Events()
				rejecting(e, test.rejected, webhookDenial(403, "no"))
				test.change(e)
				e.Writes()
				sleep(10 * time.Minute)
				if n := count(e.Writes(), test.rejected+": "); n < 10 || n > 30 {
					t.Errorf("%d tries in 10 minutes, want one in 30 s", n)
				}
				events := e.Events()
				if len(events) != 1 || !strings.HasPrefix(events[0], "Warning WriteDenied "+test.message) {
					t.Errorf("Events %q, want one: %s", events, test.message)
				}
				all, _ := conditions(e, "ns")
				if stalled := slices.Equal(all, []string{"Stalled WriteDenied"}); stalled == test.hidden {
					t.Errorf("conditions %q, want that they show the denial: %v", all, !test.hidden)
				}
				e.BeforeWrite(nil)
				sleep(time.Minute)
				all, _ = conditions(e, "ns")
				expect(t, "conditions after the cause is gone", all)
			})
		})
	}
}

// TestDeniedFieldHoldsBackNoOther patches two fields together, and then each of them, because one is
// denied.
func TestDeniedFieldHoldsBackNoOther(t *testing.T) {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c)
		secrets := controller.Owns[*corev1.Secret](widgets)
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			image := []byte(w.Spec.Containers[0].Image)
			set := func(keys ...string) error {
				_, err := secrets.Ensure(ctx, r, w.Name, func(s *corev1.Secret) {
					for _, key := range keys {
						s.Data = maps.Clone(s.Data)
						if s.Data == nil {
							s.Data = map[string][]byte{}
						}
						s.Data[key] = image
					}
				})
				return err
			}
			err := set("bad", "good")
			if denied, ok := errors.AsType[*controller.Failure](err); ok && denied.Reason == controller.ReasonWriteDenied {
				return errors.Join(set("good"), set("bad"))
			}
			return err
		})
	}
	runFailing(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		e.Writes()
		e.BeforeWrite(func(_ string, r *http.Request) error {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err == nil && strings.Contains(string(body), "/data/bad") {
				err = webhookDenial(403, "bad")
			}
			return err
		})
		for _, image := range []string{"v2", "v3"} {
			Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers[0].Image = image })
			sleep(time.Minute)
			if s, _ := Get[*corev1.Secret](e, "ns", "a"); string(s.Data["good"]) != image || string(s.Data["bad"]) != "v1" {
				t.Errorf("data %q, want only the good field changed to %s", s.Data, image)
			}
		}
		writes := e.Writes()
		if n := count(writes, "patch secrets ns/a: "); n < 10 || n > 30 {
			t.Errorf("%d writes in two minutes are denied, want some: %q", n, writes)
		}
		if events := e.Events(); len(events) != 4 {
			t.Errorf("Events %q, want one for each patch that is denied", events)
		}
	})
}

// TestStatusBesideFailure has a function that writes the status before a write that fails.
func TestStatusBesideFailure(t *testing.T) {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.MayPatchStatus())
		secrets := controller.Owns[*corev1.Secret](widgets)
		showing(widgets)
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			w.Status.Conditions, w.Status.Image = nil, "seen"
			if err := r.UpdateStatus(ctx, w); err != nil {
				return err
			}
			_, err := secrets.Ensure(ctx, r, w.Name, func(*corev1.Secret) {})
			return err
		})
	}
	runFailing(t, p, func(t *testing.T, e *Env) {
		rejecting(e, "create secrets", errQuota)
		e.Create(widget("ns", "v1"))
		sleep(5 * time.Minute)
		if n := count(e.Writes(), statusPatch); n != 2 {
			t.Errorf("%d statuses are written, want that of the function and that of the failure", n)
		}
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Stalled WriteDenied")
		if events := e.Events(); len(events) != 1 {
			t.Errorf("Events %q, want one", events)
		}
		expectRecovery(t, e, 40*time.Second)
	})
}

func TestWrongFailingIsRefused(t *testing.T) {
	for want, build := range map[string]func(*controller.Context) (controller.Controller, error){
		"test-controller: Failing changes the field Status, which *v1.ConfigMap does not have": func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.ConfigMap](c)
			b.Failing(func(*corev1.ConfigMap, *controller.Failure) {})
			return b.Reconcile(func(context.Context, *controller.Request[*corev1.ConfigMap]) error { return nil })
		},
		"test-controller: Failing was called twice for Namespace: call it once": func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
			b.Failing(func(*corev1.Namespace, *controller.Failure) {})
			b.Failing(func(*corev1.Namespace, *controller.Failure) {})
			return b.Reconcile(func(context.Context, *controller.Request[*corev1.Namespace]) error { return nil })
		},
		"test-controller: Failing needs a function, but got nil": func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
			b.Failing(nil)
			return b.Reconcile(func(context.Context, *controller.Request[*corev1.Namespace]) error { return nil })
		},
		"test-controller: Failing is called after Reconcile": func(c *controller.Context) (controller.Controller, error) {
			b := controller.For[*corev1.Namespace](c, controller.ClusterScoped())
			built, err := b.Reconcile(func(context.Context, *controller.Request[*corev1.Namespace]) error { return nil })
			b.Failing(func(*corev1.Namespace, *controller.Failure) {})
			return built, err
		},
	} {
		if all := strings.Join(failing(t, syncing(build), func(*testing.T, *Env) {}), "\n"); !strings.Contains(all, want) {
			t.Errorf("the test fails for %q, want %q", all, want)
		}
	}
}
