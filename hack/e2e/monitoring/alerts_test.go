// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
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
		if err := os.WriteFile(twice, forTwoInstallations(t, content), 0o644); err != nil {
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

// alertTests is the part of a file of promtool tests that two installations change.
type alertTests struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []struct {
		Name        string   `json:"name"`
		Interval    string   `json:"interval"`
		InputSeries []series `json:"input_series"`
		Expressions []struct {
			Expr     string   `json:"expr"`
			EvalTime string   `json:"eval_time"`
			Samples  []sample `json:"exp_samples"`
		} `json:"promql_expr_test"`
	} `json:"tests"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// forTwoInstallations adds an installation in another namespace, with the same metrics, to all
// tests. Each alert is expected for it, too.
func forTwoInstallations(t *testing.T, content []byte) []byte {
	t.Helper()
	const first, second = `namespace="sample-controller-manager"`, `namespace="second"`
	var tests alertTests
	if err := yaml.UnmarshalStrict(content, &tests); err != nil {
		t.Fatal(err)
	}
	for i := range tests.Tests {
		test := &tests.Tests[i]
		installed := false
		for _, s := range test.InputSeries {
			if strings.Contains(s.Series, first) {
				installed = true
				s.Series = strings.ReplaceAll(s.Series, first, second)
				test.InputSeries = append(test.InputSeries, s)
			}
		}
		for j := range test.Expressions {
			expression := &test.Expressions[j]
			for _, s := range expression.Samples {
				if installed {
					s.Labels = strings.ReplaceAll(s.Labels, first, second)
					expression.Samples = append(expression.Samples, s)
				}
			}
		}
	}
	encoded, err := yaml.Marshal(tests)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
