// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		annotateNamespace(e, "-")
		e.Settle()
		expect(t, "Events", e.Events(), "Normal Resumed No longer paused")
		annotateNamespace(e, "tomorrow")
		e.Settle()
		events = e.Events()
		slices.Sort(events)
		expect(t, "Events of the same value", events, "Normal Paused "+message, "Warning InvalidPause "+message)
	})
}
