// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

const paused = "ensure-manager.samplecontroller.io/paused"

// annotate sets an annotation of the Widget as a user; "-" removes it.
func annotate(e *Env, value string) {
	e.t.Helper()
	Update(e, "ns", "a", func(w *Widget) { setPause(w, value) })
}

// annotateNamespace does the same with the namespace.
func annotateNamespace(e *Env, value string) {
	e.t.Helper()
	Update(e, "", "ns", func(n *corev1.Namespace) { setPause(n, value) })
}

func setPause(o metav1.Object, value string) {
	annotations := map[string]string{paused: value}
	if value == "-" {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// change changes the spec of the Widget.
func change(e *Env, image string) {
	e.t.Helper()
	Update(e, "ns", "a", func(w *Widget) { w.Spec.Containers = widget("ns", image).Spec.Containers })
}

// expectPaused expects one write of the status, and none after changes of the object and of what it owns, nor
// after fail-over.
func expectPaused(t *testing.T, e *Env, reason, by string) {
	t.Helper()
	e.Settle()
	expect(t, "writes when it is paused", e.Writes(), statusPatch)
	all, message := conditions(e, "ns")
	expect(t, "conditions", all, "Paused "+reason)
	if !strings.HasPrefix(message, "Paused by "+by) {
		t.Errorf("the condition says %q, want that it is paused by %s", message, by)
	}
	expect(t, "Events", e.Events(), "Normal Paused "+message)
	change(e, "paused")
	Update(e, "ns", "a", func(s *corev1.Secret) { s.Data = nil })
	e.Settle()
	e.LoseLead()
	e.Lead()
	sleep(time.Minute)
	expect(t, "writes while it is paused", e.Writes())
	expect(t, "Events while it is paused", e.Events())
}

// expectResumed expects that drift is corrected, and that the condition is removed by one write of the status.
func expectResumed(t *testing.T, e *Env) {
	t.Helper()
	sleep(time.Second)
	expect(t, "writes within 1 s", e.Writes(), "patch secrets ns/a", statusPatch)
	all, _ := conditions(e, "ns")
	expect(t, "conditions", all)
	expect(t, "Events", e.Events(), "Normal Resumed No longer paused")
	sleep(time.Minute)
	expect(t, "later writes", e.Writes())
}

// runPaused runs a test with one Widget that is reconciled.
func runPaused(t *testing.T, p manager.Program, body func(*testing.T, *Env), args ...string) {
	t.Helper()
	Run(t, p, func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), "create secrets ns/a", statusPatch)
		body(t, e)
	}, args...)
}

func TestPauseOfObject(t *testing.T) {
	runPaused(t, failureProgram(), func(t *testing.T, e *Env) {
		annotate(e, "true")
		expectPaused(t, e, "PausedByAnnotation", "the annotation "+paused+" of this Widget until it is removed; to resume: "+
			"kubectl annotate -n ns widgets.test.example.com a "+paused+"-")
		annotate(e, "-")
		expectResumed(t, e)
		annotate(e, "false")
		e.Settle()
		expect(t, "writes with the value false", e.Writes())
	})
}

func TestPauseOfNamespace(t *testing.T) {
	runPaused(t, failureProgram(), func(t *testing.T, e *Env) {
		annotateNamespace(e, "")
		expectPaused(t, e, "PausedByNamespace", "the annotation "+paused+" of namespace ns until")
		annotateNamespace(e, "-")
		expectResumed(t, e)
	})
}

// TestPauseOfController also covers an end. The bubble begins at 2000-01-01.
func TestPauseOfController(t *testing.T) {
	Run(t, failureProgram(), func(t *testing.T, e *Env) {
		e.Create(widget("ns", "v1"))
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		all, message := conditions(e, "ns")
		expect(t, "conditions", all, "Paused PausedByController")
		if want := "Paused by the setting --paused-controllers for test-controller until 2000-01-01T01:00:00Z; to " +
			"resume: leave test-controller out of --paused-controllers"; message != want {
			t.Errorf("the condition says %q, want %q", message, want)
		}
		expect(t, "Events", e.Events(), "Normal Paused "+message)
		sleep(time.Until(time.Date(2000, 1, 1, 0, 59, 59, 0, time.UTC)))
		expect(t, "writes before the end", e.Writes())
		sleep(2 * time.Second)
		expect(t, "writes within 1 s of the end", e.Writes(), "create secrets ns/a", statusPatch)
	}, "--paused-controllers=test-controller=2000-01-01T01:00:00Z")
}

// TestPauseEnds has an annotation with an end, which is put off once.
func TestPauseEnds(t *testing.T) {
	runPaused(t, failureProgram(), func(t *testing.T, e *Env) {
		end := time.Now().Add(5 * time.Minute).Truncate(time.Second)
		annotate(e, end.Format(time.RFC3339))
		expectPaused(t, e, "PausedByAnnotation", "the annotation "+paused+" of this Widget until "+end.UTC().Format(time.RFC3339))
		end = end.Add(time.Hour)
		annotate(e, end.Format(time.RFC3339))
		e.Settle()
		expect(t, "writes for the new end", e.Writes(), statusPatch)
		sleep(time.Until(end) - time.Second)
		expect(t, "writes before the end", e.Writes())
		sleep(time.Second)
		expectResumed(t, e)
	})
}

func TestInvalidPause(t *testing.T) {
	runPaused(t, failureProgram(), func(t *testing.T, e *Env) {
		annotate(e, "tomorrow")
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		_, message := conditions(e, "ns")
		expect(t, "Events", e.Events(), "Warning InvalidPause "+message)
		if want := `although its value "tomorrow" is not valid: use true, false or the end of the pause, such as 2026-01-02T15:04:05Z`; !strings.Contains(message, want) {
			t.Errorf("the condition says %q, want %q", message, want)
		}
		change(e, "paused")
		e.LoseLead()
		e.Lead()
		e.Settle()
		expect(t, "writes while it is paused", e.Writes())
		expect(t, "Events while it is paused", e.Events())
	})
	runPaused(t, failureProgram(), func(t *testing.T, e *Env) {
		annotateNamespace(e, "tomorrow")
		e.Settle()
		expect(t, "writes", e.Writes(), statusPatch)
		_, message := conditions(e, "ns")
		events := e.Events()
		slices.Sort(events)
		expect(t, "Events of the object and of the namespace", events, "Normal Paused "+message, "Warning InvalidPause "+message)
	})
}

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

// TestSecondaryReportsNoPause has a controller that writes another part of the status.
func TestSecondaryReportsNoPause(t *testing.T) {
	p := failureProgram()
	p.Controllers = append(p.Controllers, controller.Descriptor{
		Name: "other-controller", Workers: 1,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			widgets := controller.For[*Widget](c, controller.MayPatchStatus(), controller.Secondary())
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
