// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"strings"
	"testing"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/debug"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/truncate"
)

func TestReportSaysThatElectionIsOff(t *testing.T) {
	super := supervisor.New(nil, supervisor.Options{})
	p := newProcess(t).parts
	p.election = nil
	var text strings.Builder
	debug.PrintHead(&text, reporter{p, super}.Report(0))
	if want := "Leader: leader election is off: run one replica only\n"; !strings.Contains(text.String(), want) {
		t.Errorf("the report is %q, want it to contain %q", text.String(), want)
	}
}

func TestExplanationIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	e := controller.Explanation{Found: true, Next: long}
	for range 1000 {
		e.Facts = append(e.Facts, controller.Fact{Name: "former Deployment", Wanted: long, Actual: long})
	}
	e = boundedExplanation(e)
	if len(e.Facts) != maxFacts+1 || e.Facts[maxFacts].Name != "and 950 more" {
		t.Errorf("%d facts, the last is %+v, want %d and the number of the others", len(e.Facts), e.Facts[len(e.Facts)-1], maxFacts)
	}
	for _, got := range []string{truncate.Error(errors.New(long)), e.Next, e.Facts[0].Wanted, e.Facts[0].Actual} {
		if len(got) > 500+len("...") || !strings.HasSuffix(got, "é...") {
			t.Errorf("%d bytes that end in %q, want at most %d whole characters and that there are more", len(got), got[len(got)-8:], 500)
		}
	}
}
