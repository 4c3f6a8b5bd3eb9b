// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
)

// TestAlerts checks the alerts in manifests/monitoring with promtool: they must be
// well-formed, and fire exactly when the files in alerts expect it, also for each of two
// installations that have the same problem.
func TestAlerts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, because Prometheus must be built: runs in make test-all")
	}
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "promtool")
	if err != nil {
		t.Fatal(err)
	}
	// promtool expects the rules without the Kubernetes object around them.
	rule := read(t, "manifests", "monitoring", "prometheusrule.yaml")
	_, rules, found := strings.Cut(rule, "\nspec:\n")
	if !found {
		t.Fatalf("no spec in %s", rule)
	}
	dir := t.TempDir()
	rulesFile := filepath.Join(dir, "rules.yaml") // where the tests look for it
	if err := os.WriteFile(rulesFile, []byte(strings.ReplaceAll("\n"+rules, "\n  ", "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "alerts"), os.DirFS("alerts")); err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob(filepath.Join(dir, "alerts", "*.yaml"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests of alerts: %v", err)
	}
	for _, file := range tests {
		if filepath.Base(file) == "installations.yaml" {
			continue // has two already
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		twice := strings.TrimSuffix(file, ".yaml") + "-twice.yaml"
		if err := os.WriteFile(twice, []byte(forTwoInstallations(string(content))), 0o644); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, twice)
	}
	for _, arguments := range [][]string{{"check", "rules", "--lint-fatal", rulesFile}, append([]string{"test", "rules"}, tests...)} {
		if output, err := exec.CommandContext(t.Context(), paths["promtool"], arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", arguments[0], err, output)
		}
	}
}

// entry matches an input series with its values, or an expected sample.
var entry = regexp.MustCompile(`(?m)^ *- (?:series: .*\n *values: .*|\{labels: .*\})$`)

// forTwoInstallations adds an installation in another namespace, with the same metrics, to all
// tests. Each alert is expected for it, too.
func forTwoInstallations(content string) string {
	const first, second = `namespace="sample-controller-manager"`, `namespace="second"`
	tests := strings.Split(content, "\n- name: ")
	for i, test := range tests {
		if regexp.MustCompile("series: .*" + first).MatchString(test) {
			tests[i] = entry.ReplaceAllStringFunc(test, func(e string) string {
				if strings.Contains(e, first) {
					e += "\n" + strings.ReplaceAll(e, first, second)
				}
				return e
			})
		}
	}
	return strings.Join(tests, "\n- name: ")
}
