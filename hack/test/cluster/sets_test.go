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
	files := map[string]string{"go.mod": "module x", "go.sum": "the sum of x", "main.go": "package main"}
	key := func(set programSet, files map[string]string) string {
		t.Helper()
		root := t.TempDir()
		for name, content := range files {
			path := filepath.Join(moduleDir(root, set), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		key, err := cacheKey(root, set)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}

	base := key(controlPlane, files)
	if again := key(controlPlane, files); again != base {
		t.Errorf("two checkouts with the same versions have the keys %s and %s", base, again)
	}
	for name := range files {
		changed := maps.Clone(files)
		changed[name] += "\n"
		if key(controlPlane, changed) == base {
			t.Errorf("the key is the same after a change of %s", name)
		}
	}
	older := controlPlane
	older.version = "v1.36.4"
	if key(older, files) == base {
		t.Error("another version of Kubernetes has the same key")
	}
	if _, err := cacheKey(t.TempDir(), controlPlane); err == nil {
		t.Error("no error without the module")
	}
}

func TestLdflags(t *testing.T) {
	for _, set := range []programSet{controlPlane, sampleController, prometheus} {
		flags := set.ldflags("v1.36.4")
		stamped := strings.Contains(flags, "-X k8s.io/component-base/version.gitVersion=v1.36.4") &&
			strings.Contains(flags, "version.gitMajor=1 ") && strings.Contains(flags, "version.gitMinor=36 ")
		if want := set.source == kubernetesSource; stamped != want {
			t.Errorf("%s: stamped with Kubernetes' version: %t, want %t: %s", set.name, stamped, want, flags)
		}
	}
}

// TestKubernetesVersion checks which version of a program the environment variable selects.
func TestKubernetesVersion(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	current, err := pinnedVersion(root, controlPlane)
	if err != nil {
		t.Fatal(err)
	}
	first := func(minor, program string) string {
		t.Helper()
		all, err := sets(root, minor)
		if err != nil {
			t.Fatal(err)
		}
		set := all[slices.IndexFunc(all, func(set programSet) bool { return slices.Contains(set.programs, program) })]
		version, err := pinnedVersion(root, set)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	for _, test := range []struct{ minor, program, want string }{
		{"", "kube-apiserver", current},
		{strings.TrimPrefix(current[:strings.LastIndex(current, ".")], "v"), "kube-apiserver", current},
		{"1.36", "kube-apiserver", "v1.36.4"},
		{"1.36", "kubectl", "v1.36.4"},
		{"1.36", "kwok", current}, // only in the default set
	} {
		if got := first(test.minor, test.program); got != test.want {
			t.Errorf("%s=%s: %s has version %s, want %s", versionVariable, test.minor, test.program, got, test.want)
		}
	}
	for _, minor := range []string{"1.3", "1.29", "v1.36", "36"} {
		if _, err := sets(root, minor); err == nil || !strings.Contains(err.Error(), "invalid KUBERNETES="+minor+": must be a minor version of one of v1.") {
			t.Errorf("%s=%s: %v, want an error that lists the versions", versionVariable, minor, err)
		}
	}
}
