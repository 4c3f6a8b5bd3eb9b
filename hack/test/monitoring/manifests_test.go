// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// read returns the content of a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEachAlertIsExplained compares the alerts with the headings of the runbook, in both
// directions, and with promtool's tests.
func TestEachAlertIsExplained(t *testing.T) {
	const page = "manifests/monitoring/runbook.md"
	explained := sets.New[string]()
	for _, heading := range regexp.MustCompile(`(?m)^### (SampleControllerManager\w+)$`).FindAllStringSubmatch(read(t, page), -1) {
		explained.Insert(heading[1])
	}
	var tests strings.Builder
	for _, name := range []string{"leadership", "troubles", "objectives", "objects", "outage", "certificate", "config"} {
		tests.WriteString(read(t, "hack", "test", "monitoring", "alerts", name+".yaml"))
	}
	alerts := sets.New[string]()
	for _, a := range rules(t).All() {
		alerts.Insert(a.Alert)
		if want := page + "#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity is %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		if !strings.Contains(tests.String(), `{alertname="`+a.Alert+`",namespace="sample-controller-manager"`) {
			t.Errorf("no test in hack/test/monitoring/alerts makes %s fire", a.Alert)
		}
	}
	if missing := alerts.Difference(explained); missing.Len() > 0 {
		t.Errorf("%s does not explain these under third-level headings: %v", page, sets.List(missing))
	}
	if unknown := explained.Difference(alerts); unknown.Len() > 0 {
		t.Errorf("%s explains these, which are not alerts: %v", page, sets.List(unknown))
	}
}

// rules returns the content of the rules file.
func rules(t *testing.T) Alerts {
	t.Helper()
	m, err := Parse(read(t, "manifests", "monitoring", "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Alerts
}

// TestRulesKeepNamespace checks that each aggregation keeps the label namespace: Alertmanager
// routes by it, and installations must not be added up. API servers belong to no installation.
func TestRulesKeepNamespace(t *testing.T) {
	aggregation := regexp.MustCompile(`\b(sum|min|max|avg|count)\b(?: (by|without) \(([^)]*)\))? ?\(`)
	found := 0
	for _, r := range rules(t).Rules() {
		expr := strings.ReplaceAll(r.Expr, `max(up{job="apiserver"})`, "")
		for _, match := range aggregation.FindAllStringSubmatch(expr, -1) {
			found++
			if match[2] != "by" || !slices.Contains(strings.Split(match[3], ", "), "namespace") {
				t.Errorf("%s%s aggregates without namespace: %s", r.Alert, r.Record, match[0])
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d aggregations", found)
	}
}

// TestParseRejectsUnknownFields checks that Parse rejects what tests would ignore.
func TestParseRejectsUnknownFields(t *testing.T) {
	whole := read(t, "manifests", "monitoring", "servicemonitor.yaml")
	if m, err := Parse(whole); err != nil || m.Endpoint.Port != "https" {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, more := range []string{"    bearerTokenFile: /token\n", "  - port: another\n", "  jobLabel: another\n"} {
		if m, err := Parse(whole + more); err == nil {
			t.Errorf("with %q: no error, but %+v", more, m.Endpoint)
		}
	}
}
