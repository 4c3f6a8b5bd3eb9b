// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// expectTotals compares all series of sync_total. A line of want is "controller result count".
func expectTotals(t *testing.T, registry metrics.KubeRegistry, want ...string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# HELP test_sync_total [ALPHA] Number of syncs, by controller and result (success, requeued, stale, conflict, timeout, error, panic).\n")
	text.WriteString("# TYPE test_sync_total counter\n")
	for _, line := range want {
		fields := strings.Fields(line)
		text.WriteString(`test_sync_total{controller="` + fields[0] + `",result="` + fields[1] + `"} ` + fields[2] + "\n")
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text.String()), "test_sync_total"); err != nil {
		t.Error(err)
	}
}

func TestPrepareCreatesSeriesAtZero(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.MustRegister)
	m.Prepare("a-controller")
	m.Prepare("b-controller")
	expectTotals(t, registry,
		"a-controller success 0", "a-controller requeued 0", "a-controller stale 0", "a-controller conflict 0", "a-controller timeout 0", "a-controller error 0", "a-controller panic 0",
		"b-controller success 0", "b-controller requeued 0", "b-controller stale 0", "b-controller conflict 0", "b-controller timeout 0", "b-controller error 0", "b-controller panic 0",
	)
	for _, controller := range []string{"a-controller", "b-controller"} {
		vec, err := testutil.GetHistogramVecFromGatherer(registry, "test_sync_duration_seconds", map[string]string{"controller": controller})
		if err != nil || len(vec) != 1 || vec.GetAggregatedSampleCount() != 0 {
			t.Errorf("durations of %s: %v (%v), want one series at zero", controller, vec, err)
		}
	}
}

func TestMetricsOfLoop(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.MustRegister)
	m.Prepare(loopName)
	inBubble(t, 0, func(b *bubble) {
		s := syncs{result: func(_ string, nth int) (time.Duration, error) {
			time.Sleep(time.Second)
			switch nth {
			case 1, 2, 3:
				return 0, errBroken
			case 4:
				return 0, errConflict
			case 5:
				panic("oh")
			case 6:
				return 0, ErrStale
			case 7:
				return time.Minute, nil
			}
			return 0, nil
		}}
		syncOne(b, &s, time.Hour, WithObserver(m.Observe))
	})
	expectTotals(t, registry,
		loopName+" success 1", loopName+" requeued 1", loopName+" stale 1", loopName+" conflict 1", loopName+" timeout 0", loopName+" error 3", loopName+" panic 1",
	)
	vec, err := testutil.GetHistogramVecFromGatherer(registry, "test_sync_duration_seconds", map[string]string{"controller": loopName})
	if err != nil {
		t.Fatal(err)
	}
	if count, sum := vec.GetAggregatedSampleCount(), vec.GetAggregatedSampleSum(); count != 8 || sum != 8 {
		t.Errorf("%d durations of %v s together, want 8 of 8 s", count, sum)
	}
}

// An outcome without an event has an EventToDone of 0.
func TestOutcomesWithoutEventAreNotMeasured(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.MustRegister)
	for _, took := range []time.Duration{0, time.Nanosecond, 2 * time.Second} {
		m.Observe(t.Context(), Outcome{Controller: loopName, Result: ResultSuccess, EventToDone: took})
	}
	vec, err := testutil.GetHistogramVecFromGatherer(registry, "test_event_to_done_seconds", map[string]string{"controller": loopName})
	if err != nil {
		t.Fatal(err)
	}
	if count, sum := vec.GetAggregatedSampleCount(), vec.GetAggregatedSampleSum(); count != 2 || sum < 2 || sum > 2.001 {
		t.Errorf("%d events took %v s together, want 2 of 2 s", count, sum)
	}
}

// TestObserverIsAdded adds the observer of a program to the metrics of the library.
func TestObserverIsAdded(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test", registry.MustRegister)
	var o outcomes
	inBubble(t, 0, func(b *bubble) {
		syncOne(b, &syncs{}, time.Minute, WithObserver(m.Observe), WithObserver(o.observe))
	})
	expectTotals(t, registry, loopName+" success 1")
	if got := len(o.all); got != 1 {
		t.Errorf("%d outcomes, want 1", got)
	}
}
