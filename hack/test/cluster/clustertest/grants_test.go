// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnusedGrantsAreFound checks that hack/unused-grants.sh adds up the files of all folders, and
// finds a grant without a use and an explanation without a grant.
func TestUnusedGrantsAreFound(t *testing.T) {
	explained := []string{"list pods", "list namespaces", "list configmaps/extension-apiserver-authentication", "list replicasets.apps"}
	granted := append([]string{"watch pods", "create deployments.apps", "update foos/finalizers.samplecontroller.k8s.io"}, explained...)
	used := []string{"create deployments.apps", "watch pods"}
	for name, c := range map[string]struct {
		granted, used []string
		want          string
	}{
		"all used":               {granted, used, "the daemon has 7 rights; all are used or explained\n"},
		"an unused grant":        {granted, used[:1], "The daemon may watch pods, but never did"},
		"a needless reason":      {granted[:6], used, "may list replicasets.apps, but that is not granted"},
		"no grant of a used one": {granted[1:], used, "the daemon has 6 rights"},
		"no files":               {nil, nil, "cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, lines := range map[string][]string{"a.granted": c.granted, "b.granted": c.granted, "a.used": c.used[:min(1, len(c.used))],
				"b.used": c.used} {
				if lines == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, i), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			output, err := exec.CommandContext(t.Context(), "../../../unused-grants.sh", dir).CombinedOutput()
			if wantFailure := !strings.HasPrefix(c.want, "the daemon has"); !strings.Contains(string(output), c.want) ||
				(err != nil) != wantFailure {
				t.Errorf("got %v, %s, want %q", err, output, c.want)
			}
		})
	}
}
