// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestAlerts lets promtool check the alerts in manifests/monitoring: that they are
// well-formed, and that each fires when it should and only then, as the files in alerts say.
func TestAlerts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, as Prometheus has to be built: runs in make test-all")
	}
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "promtool")
	if err != nil {
		t.Fatal(err)
	}
	// promtool takes the rules without what makes an object of Kubernetes of them.
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
	for _, arguments := range [][]string{{"check", "rules", rulesFile}, append([]string{"test", "rules"}, tests...)} {
		if output, err := exec.CommandContext(t.Context(), paths["promtool"], arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", arguments[0], err, output)
		}
	}
}
