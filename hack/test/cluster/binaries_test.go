// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAssetsArePreferred puts one program into the assets directory.
func TestAssetsArePreferred(t *testing.T) {
	assets := t.TempDir()
	etcd := filepath.Join(assets, "etcd")
	if err := os.WriteFile(etcd, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(assetsVariable, assets)
	paths, err := Binaries(t.Context(), os.Stderr, "etcd", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if paths["etcd"] != etcd || filepath.Dir(paths["kubectl"]) == assets {
		t.Errorf("%v, want etcd from %s and kubectl from the cache", paths, assets)
	}
}

func TestUnknownProgram(t *testing.T) {
	if _, err := Binaries(t.Context(), os.Stderr, "kubelet"); err == nil || !strings.Contains(err.Error(), `"kubelet"`) {
		t.Errorf("got %v, want an error that names kubelet", err)
	}
}

// TestBinaries checks that programs have the pinned versions, and that nothing is printed if
// all are cached.
func TestBinaries(t *testing.T) {
	t.Setenv(assetsVariable, "")
	if _, err := Binaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	paths, err := Binaries(t.Context(), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if progress.Len() > 0 {
		t.Errorf("progress of a cached build: %q", progress.String())
	}
	if len(paths) != len(controlPlane.programs) {
		t.Errorf("%d programs, want %d", len(paths), len(controlPlane.programs))
	}
	for _, name := range []string{"kubectl", "kube-apiserver", "kube-scheduler"} {
		args := []string{"--version"}
		if name == "kubectl" {
			args = []string{"version", "--client"}
		}
		output, err := exec.CommandContext(t.Context(), paths[name], args...).CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		if want := wantedKubernetes(t); !strings.Contains(string(output), want) {
			t.Errorf("%s prints %q, want %s", name, output, want)
		}
	}
}

// wantedKubernetes returns the expected version of the control plane.
func wantedKubernetes(t *testing.T) string {
	t.Helper()
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := sets(root, os.Getenv(versionVariable))
	if err != nil {
		t.Fatal(err)
	}
	version, err := pinnedVersion(root, all[0])
	if err != nil {
		t.Fatal(err)
	}
	return version
}
