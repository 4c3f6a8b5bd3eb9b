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

	"samplecontroller.io/sample-controller-manager/hack/cluster"
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
	const page = "manifests/monitoring/README.md"
	m, err := Parse(read(t, "manifests", "monitoring", "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	headings := sets.New[string]()
	for _, heading := range regexp.MustCompile(`(?m)^### (SampleControllerManager\w+)$`).FindAllStringSubmatch(read(t, page), -1) {
		headings.Insert(heading[1])
	}
	tests := read(t, "hack", "e2e", "monitoring", "alerts", "leadership.yaml") + read(t, "hack", "e2e", "monitoring", "alerts", "troubles.yaml")
	for _, a := range m.Alerts.All() {
		if !headings.Has(a.Alert) {
			t.Errorf("%s does not explain %s under a heading of the third order", page, a.Alert)
		}
		headings.Delete(a.Alert)
		if want := page + "#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity is %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s lacks a summary or a description", a.Alert)
		}
		if len(Selectors(a.Expr)) == 0 {
			t.Errorf("%s reads nothing: %s", a.Alert, a.Expr)
		}
		if !strings.Contains(tests, `{alertname="`+a.Alert+`"}`) {
			t.Errorf("no test in hack/e2e/monitoring/alerts has %s fire", a.Alert)
		}
	}
	for heading := range headings {
		t.Errorf("%s explains %s, which is not alerted of", page, heading)
	}
}

// TestParseHeedsAll has Parse refuse what tests would not heed.
func TestParseHeedsAll(t *testing.T) {
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
