// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"
	"testing"
)

// TestPause covers the row about the pause annotation of namespaces.
func TestPause(t *testing.T) {
	const list = "list namespaces"
	for name, test := range map[string]struct {
		namespace string
		denied    string
		want      Check
	}{
		"granted":       {"", "", Check{"pause", OK, "the annotation x/paused pauses an object, or all of a namespace"}},
		"denied":        {"", list, Check{"pause", WARN, "may not list namespaces in all namespaces, so the annotation x/paused is ignored on namespaces; it pauses an object"}},
		"one namespace": {"ns", list, Check{"pause", SKIP, "with --namespace, the annotation x/paused pauses an object, and is ignored on the namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newFakeServer(), program()
			s.denied[test.denied+" in all namespaces"] = true
			p.Namespace = test.namespace
			p.Pause = &Pause{"x/paused", []Permission{{Verb: "list", Resource: "namespaces"}, {Verb: "watch", Resource: "namespaces"}}}
			report := s.run(t, p)
			if !slices.Contains(report.Checks, test.want) {
				t.Errorf("checks %v, want %v", report.Checks, test.want)
			}
		})
	}
}
