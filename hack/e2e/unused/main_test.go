// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUnusedGrantsAreFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, lines ...string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	explained := slices.Collect(maps.Keys(mayBeUnused))
	if _, _, err := read(dir); err == nil {
		t.Error("an empty directory is accepted")
	}
	write("a.granted", append(explained, "watch pods", "create deployments.apps")...)
	write("a.used", "watch pods")
	write("b.granted", explained...)
	write("b.used", "create deployments.apps")
	granted, used, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(granted, used); err != nil {
		t.Errorf("grants used in two folders: %v", err)
	}
	delete(used, "watch pods")
	if err := check(granted, used); err == nil || !strings.Contains(err.Error(), "may watch pods, but never did") {
		t.Errorf("an unused grant: %v", err)
	}
	used["watch pods"] = true
	delete(granted, explained[0])
	if err := check(granted, used); err == nil || !strings.Contains(err.Error(), explained[0]+", but that is not granted") {
		t.Errorf("an explanation of a missing grant: %v", err)
	}
}
