// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// foo returns a Foo with a status.
func foo(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": "a", "generation": int64(2), "creationTimestamp": "2026-01-01T00:00:00Z"},
		"status":   status,
	}}
}

func conditions(all ...any) []any { return all }

func condition(conditionType, status, reason string) map[string]any {
	return map[string]any{"type": conditionType, "status": status, "reason": reason, "message": "why", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

func TestObjectsSayWhatTheirStatusSays(t *testing.T) {
	for name, test := range map[string]struct {
		status map[string]any
		want   Object
	}{
		"no status": {nil, Object{Since: since.Add(-27*time.Hour - 4*time.Minute - 5*time.Second), Next: "no daemon has written a status yet: kubectl scm status"}},
		"ready": {
			map[string]any{"observedGeneration": int64(2), "availableReplicas": int64(1), "replicas": int64(1), "pods": map[string]any{"summary": "1/1 ready"},
				"conditions": conditions(condition("Ready", "True", "Available"))},
			Object{Condition: "Ready", Reason: "Available", Message: "why", Since: since, Next: "nothing", Available: 1, Replicas: 1, Pods: "1/1 ready"},
		},
		"ready for the last spec": {
			map[string]any{"observedGeneration": int64(1), "conditions": conditions(condition("Ready", "True", "Available"))},
			Object{Condition: "Reconciling", Reason: "Progressing", Message: "the controller has not seen the last change of the spec", Since: since, Next: "wait"},
		},
		"paused": {
			map[string]any{"observedGeneration": int64(2), "conditions": conditions(condition("Paused", "True", "PausedByAnnotation"), condition("Ready", "True", "Available"))},
			Object{Condition: "Ready", Reason: "Available", Message: "why", Since: since, Paused: "why", Next: "resume it when it may be written again"},
		},
		"stalled": {
			map[string]any{"observedGeneration": int64(2), "conditions": conditions(condition("Ready", "False", "InvalidSpec"), condition("Stalled", "True", "InvalidSpec"))},
			Object{Condition: "Stalled", Reason: "InvalidSpec", Message: "why", Since: since, Next: "correct the field that the message names"},
		},
		"of another shape": {map[string]any{"conditions": "none"}, Object{Since: since.Add(-27*time.Hour - 4*time.Minute - 5*time.Second), Next: "no daemon has written a status yet: kubectl scm status"}},
	} {
		test.want.Kind, test.want.Namespace, test.want.Name = "Foo", "default", "a"
		if diff := cmp.Diff(test.want, NewObject(Kinds[0], foo(test.status))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUrgentObjectsComeFirst(t *testing.T) {
	at := func(condition string, age time.Duration) Object {
		return Object{Condition: condition, Since: since.Add(-age)}
	}
	want := []Object{at("Stalled", time.Hour), at("Stalled", time.Minute), at("", time.Second), at("Reconciling", time.Hour), at("Ready", time.Hour)}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Urgency)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestKindOf(t *testing.T) {
	for _, given := range []string{"Foo", "foo", "foos", "foos.samplecontroller.k8s.io"} {
		if kind, err := KindOf(given); err != nil || kind.Name != "Foo" {
			t.Errorf("%s: %v, %v", given, kind, err)
		}
	}
	if _, err := KindOf("pod"); err == nil || err.Error() != `"pod" is not a kind that the daemon keeps: use foo or icecream` {
		t.Errorf("pod: %v", err)
	}
}

// TestEventsOfBothAPIs has Events as the recorders of core/v1 and of events.k8s.io write them.
func TestEventsOfBothAPIs(t *testing.T) {
	later := since.Add(time.Minute)
	series := &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(later)}
	for name, test := range map[string]struct {
		event corev1.Event
		last  time.Time
		count int32
	}{
		"once":          {corev1.Event{EventTime: metav1.NewMicroTime(since)}, since, 1},
		"series":        {corev1.Event{EventTime: metav1.NewMicroTime(since), Series: series}, later, 3},
		"counted, core": {corev1.Event{FirstTimestamp: metav1.NewTime(since), LastTimestamp: metav1.NewTime(later), Count: 2}, later, 2},
	} {
		if got := newEvent(&test.event); !got.Last.Equal(test.last) || got.Count != test.count {
			t.Errorf("%s: %v, %d times, want %v, %d times", name, got.Last, got.Count, test.last, test.count)
		}
	}
}
