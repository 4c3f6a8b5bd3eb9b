// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/reconcile"
)

// TestPagesFitIntoTerminal has the longest names of the daemon, and long errors.
func TestPagesFitIntoTerminal(t *testing.T) {
	denied := `listing: foos.samplecontroller.k8s.io is forbidden: User "system:serviceaccount:sample-controller-manager:sample-controller-manager" cannot list resource "foos" in API group "samplecontroller.k8s.io" in the namespace "default"`
	entry := reconcile.Entry{Key: "default/example-of-a-long-name", Trigger: "deployments changed", Time: before(time.Hour), Retries: 12, Error: denied}
	outcome := reconcile.Outcome{
		Key: entry.Key, Trigger: entry.Trigger, Began: before(time.Minute), Result: "error", Error: denied,
		Writes: []reconcile.Write{{Verb: "patch", Resource: "foos/status.samplecontroller.k8s.io", Result: "denied"}, {Verb: "create", Resource: "deployments.apps", Result: "denied"}},
	}
	report := Report{
		Program: "sample-controller-manager", Version: "v0.2.0", Time: now,
		Leader: "sample-controller-manager-7d9f8b6c5-abcde_0b8ad48f-9f5c-4b8e-8f2e-0f6c8c7e1d2a leads since 2026-01-02T03:00:00Z",
		Controllers: []Controller{{
			Name: "status-aggregator-controller", State: "WaitingForAPI", Since: before(99 * time.Minute), Reason: denied,
			Queues: []reconcile.Progress{{Queue: "status-aggregator-controller", Running: turns(10, entry), Waiting: turns(9999, entry),
				Delayed: turns(9999, entry), Failing: 9999, LastSuccess: before(99 * time.Minute),
				Failures: []reconcile.Outcome{outcome}, Recent: []reconcile.Outcome{outcome}}},
		}},
		Resources: []Resource{{Name: "icecreams.controller.nicoleh.io", Since: before(99 * time.Minute), Objects: 100000, Reason: denied}},
	}
	explanation := Explanation{Controller: "foo-controller", Object: entry.Key, State: "Degraded", Reason: denied, Time: now,
		Delayed: []reconcile.Entry{entry}, Syncs: []reconcile.Outcome{outcome}}
	explanation.Explanation = controller.Explanation{Found: true, Next: denied, Facts: []controller.Fact{
		controller.NewFact("its owner", `Foo "example-of-a-long-name", UID 0b8ad48f-9f5c-4b8e-8f2e-0f6c8c7e1d2a`, `Foo "other", UID 1b8ad48f-9f5c-4b8e-8f2e-0f6c8c7e1d2a`),
	}}
	var text strings.Builder
	PrintHead(&text, report)
	PrintReport(&text, report)
	PrintController(&text, report)
	PrintExplanation(&text, explanation)
	for l := range strings.Lines(text.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(l, "\n")) > width {
			t.Errorf("longer than %d columns: %s", width, l)
		}
	}
	// On each of the three pages.
	if got := strings.Count(text.String(), "403: may not list foos in default"); got != 3 {
		t.Errorf("the error is on the pages %d times, want once on each:\n%s", got, text.String())
	}
}

func TestCommandsStayWhole(t *testing.T) {
	var text strings.Builder
	PrintWrapped(&text, "Next: ", "make this Foo its owner, which then keeps its replicas and image: kubectl -n default patch deployment foreign -p '{}'")
	PrintWrapped(&text, "Next: ", "resume it: kubectl rollout resume deployment a")
	want := `Next: make this Foo its owner, which then keeps its replicas and image:
      kubectl -n default patch deployment foreign -p '{}'
Next: resume it: kubectl rollout resume deployment a
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}
