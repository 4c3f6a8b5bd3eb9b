// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCacheKey(t *testing.T) {
	files := map[string]string{}
	for _, tool := range tools {
		files[tool.module+"/go.mod"] = "module " + tool.module
		files[tool.module+"/go.sum"] = "sum of " + tool.module
	}
	key := func(files map[string]string) string {
		t.Helper()
		root := t.TempDir()
		for name, content := range files {
			path := toolsModule(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		key, err := cacheKey(root, tools)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}

	base := key(files)
	if again := key(files); again != base {
		t.Errorf("two checkouts with the same versions have the keys %s and %s", base, again)
	}
	for name := range files {
		changed := maps.Clone(files)
		changed[name] += "\n"
		if key(changed) == base {
			t.Errorf("a change of %s leaves the key as it is", name)
		}
	}
	if _, err := cacheKey(t.TempDir(), tools); err == nil {
		t.Error("no error without the tools modules")
	}
}

func TestLdflags(t *testing.T) {
	for _, tool := range slices.Concat(tools, peers) {
		flags := tool.ldflags("v1.36.4")
		stamped := strings.Contains(flags, "-X k8s.io/component-base/version.gitVersion=v1.36.4") &&
			strings.Contains(flags, "version.gitMinor=36 ")
		if want := tool.source == kubernetesSource; stamped != want {
			t.Errorf("%s: stamped with Kubernetes' version: %t, want %t: %s", tool.name, stamped, want, flags)
		}
	}
}

func TestRepositoryRoot(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	// A module inside the repository is not its root.
	t.Chdir(toolsModule(root, "kwok"))
	if got, err := RepositoryRoot(); err != nil || got != root {
		t.Errorf("from a nested module: %q, %v; want %q", got, err, root)
	}
	t.Chdir(t.TempDir())
	if got, err := RepositoryRoot(); err == nil {
		t.Errorf("outside the repository: %q, want an error", got)
	}
}
