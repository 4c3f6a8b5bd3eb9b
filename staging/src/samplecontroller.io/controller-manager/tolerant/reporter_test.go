// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tolerant

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestReporterReportsEachVersionOnce(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	events := record.NewFakeRecorder(10)
	reporter := NewReporter(events)
	report := func(obj *Thing, want bool) {
		t.Helper()
		if got := reporter.Report(ctx, obj); got != want {
			t.Errorf("Report(%s at %s) = %v, want %v", obj.Name, obj.ResourceVersion, got, want)
		}
	}

	report(decoded("a", "1"), false)
	report(placeholderFor("a", "2", badMessage), true)
	report(placeholderFor("a", "2", badMessage), true) // a resync
	report(placeholderFor("b", "3", badMessage), true)
	report(placeholderFor("a", "2", badMessage), true)
	report(placeholderFor("a", "4", "another"), true)
	report(decoded("a", "5"), false) // repaired
	report(placeholderFor("a", "6", badMessage), true)

	const advice = " Fix it (for example, with kubectl edit) or delete it."
	want := []string{
		"Warning Undecodable Skipping object: failed to decode: " + badMessage + "." + advice,
		"Warning Undecodable Skipping object: failed to decode: " + badMessage + "." + advice,
		"Warning Undecodable Skipping object: failed to decode: another." + advice,
		"Warning Undecodable Skipping object: failed to decode: " + badMessage + "." + advice,
	}
	var got []string
	for len(events.Events) > 0 {
		got = append(got, <-events.Events)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected Events (-want +got):\n%s", diff)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if strings.Contains(log, badMessage) {
		t.Errorf("the log contains the reason, which may quote the object:\n%s", log)
	}
	if got := strings.Count(log, "Skipping object that cannot be decoded"); got != len(want) {
		t.Errorf("%d lines in the log, want %d:\n%s", got, len(want), log)
	}
}
