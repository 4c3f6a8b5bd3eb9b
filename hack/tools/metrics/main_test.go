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
			t.Errorf("%s: %q: want a name with our prefix, and a help text that is a sentence and fits into a table", r.name, r.help)
		}
		for label := range strings.SplitSeq(r.labels, ",") {
			switch label {
			case "", "controller", "result", "state", "end", "verb", "resource", "condition", "reason":
			default:
				t.Errorf("%s has label %q, which is not known to have few values", r.name, label)
			}
		}
	}
	for _, kind := range []string{"counter", "gauge", "histogram"} {
		if kinds[kind] == 0 {
			t.Errorf("no metric is a %s", kind)
		}
		delete(kinds, kind)
	}
	if len(kinds) > 0 {
		t.Errorf("unknown metric types: %v", kinds)
	}
}

func TestUnknownDescriptionIsAnError(t *testing.T) {
	for _, desc := range []string{"", `Desc{fqName: "x", help: "no stability", unit: "", constLabels: {}, variableLabels: {}}`, `Desc{fqName: "x", help: "[ALPHA] x", unit: "", constLabels: {a="b"}, variableLabels: {}}`} {
		if r, err := parse("counter", desc); err == nil {
			t.Errorf("parse(%q) = %v, want an error", desc, r)
		}
	}
}
