// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLocate(t *testing.T) {
	cache, assets := t.TempDir(), t.TempDir()
	for _, path := range []string{
		filepath.Join(cache, "etcd"),
		filepath.Join(cache, "kube-apiserver"),
		filepath.Join(cache, "kubectl.partial"),
		filepath.Join(assets, "kube-apiserver"),
	} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := wantedTools([]string{"etcd", "kube-apiserver", "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	found, missing := locate(wanted, cache, assets)
	if got, want := found["etcd"], filepath.Join(cache, "etcd"); got != want {
		t.Errorf("etcd: %q, want %q: the assets have none", got, want)
	}
	if got, want := found["kube-apiserver"], filepath.Join(assets, "kube-apiserver"); got != want {
		t.Errorf("kube-apiserver: %q, want %q: the assets come first", got, want)
	}
	if len(missing) != 1 || missing[0].name != "kubectl" {
		t.Errorf("missing: %v, want kubectl: it is half built", missing)
	}
}

func TestWantedToolsRefusesUnknown(t *testing.T) {
	if _, err := wantedTools([]string{"etcd", "kubelet"}); err == nil || !strings.Contains(err.Error(), `"kubelet"`) {
		t.Errorf("got %v, want an error that names kubelet", err)
	}
}

// TestBinaries checks what the build promises: the version that the modules
// pin, and silence when all is cached.
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
	if len(paths) != len(tools) {
		t.Errorf("%d programs, want %d", len(paths), len(tools))
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
		if want := pinnedKubernetes(t); !strings.Contains(string(output), want) {
			t.Errorf("%s says %q, want %s", name, output, want)
		}
	}
}

// TestPeersAreBuiltForThoseWhoNameThem looks at the only peer. That it is not a
// program of the cluster shows in their number, in TestBinaries.
func TestPeersAreBuiltForThoseWhoNameThem(t *testing.T) {
	t.Setenv(assetsVariable, "")
	paths, err := Binaries(t.Context(), os.Stderr, "sample-controller", "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 2 || paths["kubectl"] == "" {
		t.Errorf("%v, want the two that are named", paths)
	}
	usage, err := exec.CommandContext(t.Context(), paths["sample-controller"], "-help").CombinedOutput()
	if err != nil || !strings.Contains(string(usage), "-kubeconfig string") {
		t.Errorf("sample-controller -help: %v, %q", err, usage)
	}
	dir := filepath.Dir(paths["sample-controller"])
	if crd, err := os.ReadFile(filepath.Join(dir, SampleControllerCRD)); err != nil || !strings.Contains(string(crd), "maximum: 10") {
		t.Errorf("the CRD beside it: %v, %q", err, crd)
	}
	if dir == filepath.Dir(paths["kubectl"]) {
		t.Error("a change of its version would have the whole cluster built anew")
	}
}

// pinnedKubernetes returns the version of Kubernetes in the tools module.
func pinnedKubernetes(t *testing.T) string {
	t.Helper()
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(toolsModule(root, "kubernetes"), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`\sk8s\.io/kubernetes (v\S+)`).FindSubmatch(content)
	if match == nil {
		t.Fatal("the kubernetes tools module pins no k8s.io/kubernetes")
	}
	return string(match[1])
}

func TestReportEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		stop := reportEvery(15*time.Second, func() { reports++ })
		time.Sleep(40 * time.Second)
		stop()
		time.Sleep(time.Minute)
		if reports != 2 {
			t.Errorf("%d reports in 40 s, want 2 and none after the end", reports)
		}
	})
}
