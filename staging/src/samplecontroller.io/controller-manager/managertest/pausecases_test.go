// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

// TestPauseWithoutConditions has a kind whose status has no such field.
func TestPauseWithoutConditions(t *testing.T) {
	p := ensureProgram()
	p.Controllers = p.Controllers[:1]
	Run(t, p, func(t *testing.T, e *Env) {
		o := owner("ns", nil)
		o.Annotations = map[string]string{paused: "1"}
		e.Create(o)
		e.Settle()
		expect(t, "writes", e.Writes())
		events := e.Events()
		if len(events) != 1 || !strings.HasPrefix(events[0], "Warning InvalidPause Paused by the annotation") {
			t.Errorf("Events %q, want one", events)
		}
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
		e.Settle()
		expect(t, "Events after a change", e.Events())
		Update(e, "ns", "a", func(m *corev1.ConfigMap) { m.Annotations = nil })
		e.Settle()
		if writes := e.Writes(); len(writes) == 0 {
			t.Error("nothing is written when it is resumed")
		}
	})
}

// TestDeletionIsNotPaused deletes a paused object whose finalizer must run.
func TestDeletionIsNotPaused(t *testing.T) {
	finalized := 0
	p := failureProgram(func(b *controller.Builder[*Widget]) {
		b.Finalize("test.example.com/vault", func(context.Context, *controller.Request[*Widget]) error {
			finalized++
			return nil
		})
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		e.Writes()
		annotate(e, "true")
		e.Settle()
		expect(t, "writes when it is paused", e.Writes(), statusPatch)
		annotateNamespace(e, "true")
		e.Settle()
		expect(t, "writes when its namespace is paused, too", e.Writes())
		e.Delete(widget("ns", ""))
		e.Settle()
		expect(t, "writes", e.Writes(), "patch widgets.test.example.com ns/a")
		if _, exists := Get[*Widget](e, "ns", "a"); exists || finalized != 1 {
			t.Errorf("the finalizer ran %d times, and the object exists: %v", finalized, exists)
		}
	}, "--paused-controllers=test-controller=1999-01-01T00:00:00Z") // which is over
}

// TestNewObjectIsPaused creates a paused object: it gets no finalizer.
func TestNewObjectIsPaused(t *testing.T) {
	p := failureProgram(func(b *controller.Builder[*Widget]) {
		b.Finalize("test.example.com/vault", func(context.Context, *controller.Request[*Widget]) error { return nil })
	})
	Run(t, p, func(t *testing.T, e *Env) {
		w := widget("ns", "v1")
		setPause(w, "true")
		e.Create(w)
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
	})
}

// TestPauseDuringCall pauses the object or its namespace just before the first of two writes of a call: the second
// is not sent, whatever the function makes of the error.
func TestPauseDuringCall(t *testing.T) {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.MayPatchStatus())
		secrets := controller.Owns[*corev1.Secret](widgets)
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			for _, name := range []string{"first", "second"} {
				if _, err := secrets.Ensure(ctx, r, name, func(*corev1.Secret) {}); err != nil {
					meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", Reason: "Failed"})
					r.UpdateStatus(ctx, w)
					return controller.UserError("Failed", err)
				}
			}
			return nil
		})
	}
	for name, pause := range map[string]func(*Env, string){"object": annotate, "namespace": annotateNamespace} {
		t.Run(name, func(t *testing.T) {
			Run(t, p, func(t *testing.T, e *Env) {
				e.BeforeWrite(func(write string, _ *http.Request) error {
					if write == "create secrets ns/first" {
						pause(e, "true")
						// The informer gets the event before the API server answers the write.
						time.Sleep(100 * time.Millisecond)
					}
					return nil
				})
				e.Create(widget("ns", "v1"))
				e.Settle()
				expect(t, "writes", e.Writes(), "create secrets ns/first", statusPatch)
				_, message := conditions(e, "ns")
				expect(t, "Events", e.Events(), "Normal Paused "+message)
				pause(e, "-")
				e.Settle()
				expect(t, "writes when it is resumed", e.Writes(), "create secrets ns/second", statusPatch)
			})
		})
	}
}

// withOther returns failureProgram with a second controller of Widgets, which writes another part of the status.
func withOther(opts ...controller.Option) manager.Program {
	p := failureProgram()
	p.Controllers = append(p.Controllers, controller.Descriptor{
		Name: "other-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			widgets := controller.For[*Widget](c, append(opts, controller.MayPatchStatus())...)
			return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
				w, ok := r.Object()
				if !ok {
					return nil
				}
				w.Status.Ports = int32(len(w.Spec.Containers[0].Image))
				return r.UpdateStatus(ctx, w)
			})
		},
	})
	return p
}

func TestSecondaryReportsNoPause(t *testing.T) {
	p := withOther(controller.Secondary())
	const other = "--paused-controllers=other-controller"
	Run(t, p, func(t *testing.T, e *Env) {
		w := widget("ns", "v1")
		setPause(w, "true")
		e.Create(w)
		e.Settle()
		expect(t, "writes of both", e.Writes(), statusPatch)
		if events := e.Events(); len(events) != 1 {
			t.Errorf("Events %q, want one", events)
		}
		expectWidget(e, "ns", "spec", `{"containers":[{"name":"app","image":"v1","resources":{}}]}`)
		annotate(e, "-")
		e.Settle()
		expect(t, "writes of the other one", e.Writes(), "create secrets ns/a", statusPatch)
		w, _ = Get[*Widget](e, "ns", "a")
		if w.Status.Image != "v1" || w.Status.Ports != 0 || len(w.Status.Conditions) != 0 {
			t.Errorf("status %+v, want that of the controller that is not paused", w.Status)
		}
	}, other)
}

// TestTwoControllersReportPauses has two controllers that both report the pauses of Widgets.
func TestTwoControllersReportPauses(t *testing.T) {
	const end = "=2000-01-01T01:00:00Z"
	for name, test := range map[string]struct {
		controllers, annotation string
		later                   []string // conditions after the end of the controllers' pauses
	}{
		"one paused":                {"other-controller" + end, "-", nil},
		"both paused":               {"other-controller" + end + ",test-controller" + end, "-", nil},
		"one paused, and an object": {"other-controller" + end, "true", []string{"Paused PausedByAnnotation"}},
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, withOther(), func(t *testing.T, e *Env) {
				w := widget("ns", "v1")
				setPause(w, test.annotation)
				e.Create(w)
				e.Settle()
				if n := count(e.Writes(), statusPatch); n > 2 {
					t.Errorf("%d statuses are written, want at most one by each controller", n)
				}
				all, _ := conditions(e, "ns")
				expect(t, "conditions", all, "Paused PausedByController")
				sleep(50 * time.Minute)
				expect(t, "later writes", e.Writes())
				sleep(15 * time.Minute)
				all, _ = conditions(e, "ns")
				expect(t, "conditions after the end", all, test.later...)
				w, _ = Get[*Widget](e, "ns", "a")
				if resumed := w.Status.Image == "v1" && w.Status.Ports == 2; resumed != (test.later == nil) {
					t.Errorf("status after the end: %+v", w.Status)
				}
			}, "--paused-controllers="+test.controllers)
		})
	}
}

// TestOwnPausedCondition has a program whose controller writes a condition of that type itself.
func TestOwnPausedCondition(t *testing.T) {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.MayPatchStatus())
		return widgets.Reconcile(func(ctx context.Context, r *controller.Request[*Widget]) error {
			w, ok := r.Object()
			if !ok {
				return nil
			}
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: "Paused", Status: "False", Reason: "Own"})
			return r.UpdateStatus(ctx, w)
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		all, _ := conditions(e, "ns")
		expect(t, "conditions", all, "Paused Own")
		expect(t, "Events", e.Events())
	})
}

// TestProgressWithOwnPausedCondition has such a condition, and a status whose progress waits for an interval.
func TestProgressWithOwnPausedCondition(t *testing.T) {
	p := failureProgram(func(b *controller.Builder[*Widget]) {
		b.Paced(time.Second, func(_, _ *Widget) controller.Change { return controller.OnlyProgress })
	})
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		sleep(10 * time.Second)
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		patchWidget(e, "ns", `{"status":{"conditions":[{"type":"Paused","status":"False","reason":"Own","message":"",`+
			`"lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`, "status")
		sleep(time.Minute)
		change(e, "v2")
		sleep(10 * time.Second)
		expect(t, "writes of progress", e.Writes(), "patch secrets ns/a", statusPatch)
	})
}

// TestTransformKeepsPause drops all annotations from the cache.
func TestTransformKeepsPause(t *testing.T) {
	p := failureProgram()
	p.Controllers[0].New = func(_ context.Context, c *controller.Context) (controller.Controller, error) {
		widgets := controller.For[*Widget](c, controller.Transform(func(w *Widget) { w.Annotations = nil }))
		return widgets.Reconcile(func(context.Context, *controller.Request[*Widget]) error {
			t.Error("a paused object is reconciled")
			return nil
		})
	}
	Run(t, p, func(t *testing.T, e *Env) {
		w := widget("ns", "v1")
		setPause(w, "true")
		e.Create(w)
		e.Settle()
	})
}
