// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestAllMetricsAreDescribed(t *testing.T) {
	rows, err := rows()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range rows {
		kinds[r.kind]++
		if !strings.HasPrefix(r.name, "sample_controller_manager_") || !strings.HasSuffix(r.help, ".") || strings.Contains(r.help, "|") {
			t.Errorf("%s: %q: want a name with our prefix, and help that is a sentence and fits into a table", r.name, r.help)
		}
		for label := range strings.SplitSeq(r.labels, ",") {
			switch label {
			case "", "controller", "result", "state", "end", "verb", "resource":
			default:
				t.Errorf("%s has label %q: can its values be counted on one hand?", r.name, label)
			}
		}
	}
	for _, kind := range []string{"counter", "gauge", "histogram"} {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
		delete(kinds, kind)
	}
	if len(kinds) > 0 {
		t.Errorf("unknown types of metrics: %v", kinds)
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, desc := range []string{"", `Desc{fqName: "x", help: "no stability", unit: "", constLabels: {}, variableLabels: {}}`, `Desc{fqName: "x", help: "[ALPHA] x", unit: "", constLabels: {a="b"}, variableLabels: {}}`} {
		if r, err := parse("counter", desc); err == nil {
			t.Errorf("parse(%q) = %v, want an error", desc, r)
		}
	}
}
