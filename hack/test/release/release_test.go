// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestRelease builds a release around dummies of the binaries, twice, and looks at its files.
func TestRelease(t *testing.T) {
	b := newBuilder(t)
	const image = "registry.example.com:5000/team/sample-controller-manager"
	files := b.write(t, "-image="+image)
	for file, content := range b.write(t, "-image="+image) {
		if !bytes.Equal(files[file], content) {
			t.Errorf("two builds of %s differ", file)
		}
	}
	want := []string{
		"SHA256SUMS", "components.tar.gz", "crds.yaml", "install.yaml",
		"kubectl-scm_v1.2.3_linux_amd64.tar.gz", "kubectl-scm_v1.2.3_windows_amd64.tar.gz",
		"release-notes.md",
		"sample-controller-manager-v1.2.3-linux-amd64.cdx.json", "sample-controller-manager-v1.2.3.tar", "scm.yaml",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	const wantReference = image + ":v1.2.3@" + digest
	t.Run("checksums", func(t *testing.T) { checkSums(t, files) })
	t.Run("install", func(t *testing.T) { checkInstall(t, files, wantReference) })
	t.Run("components", func(t *testing.T) { b.checkComponents(t, files, wantReference) })
	t.Run("plugin", func(t *testing.T) { checkPlugin(t, files) })
	t.Run("notes", func(t *testing.T) {
		for _, part := range []string{
			"It is faster.", wantReference, "Built with go1.", "git checkout " + commit + "\nmake release VERSION=v1.2.3 FIPS=0\n",
		} {
			if !strings.Contains(string(files["release-notes.md"]), part) {
				t.Errorf("the notes lack %q:\n%s", part, files["release-notes.md"])
			}
		}
		if strings.Contains(string(files["release-notes.md"]), "It was slow.") {
			t.Error("the notes have the changes of an earlier version")
		}
	})
}

// TestImageThatNoRegistryHolds checks that a release which names no registry says so wherever it
// names the image.
func TestImageThatNoRegistryHolds(t *testing.T) {
	files := newBuilder(t).write(t)
	const warning = "NO REGISTRY HOLDS THE IMAGE sample-controller-manager:v1.2.3"
	checkInstall(t, files, "sample-controller-manager:v1.2.3")
	for _, file := range []string{"install.yaml", "release-notes.md"} {
		if !strings.Contains(string(files[file]), warning) {
			t.Errorf("%s lacks %q", file, warning)
		}
	}
}

// checkSums checks that SHA256SUMS has the checksum of every other file.
func checkSums(t *testing.T, files map[string][]byte) {
	got, want := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		got[file] = sum
	}
	for file, content := range files {
		if file != "SHA256SUMS" {
			want[file] = sum(content)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SHA256SUMS (-want +got):\n%s", diff)
	}
}

// checkInstall checks that install.yaml has an object of each kind of the base, once, and runs
// the image; and that crds.yaml has the CRDs alone.
func checkInstall(t *testing.T, files map[string][]byte, reference string) {
	t.Helper()
	kinds := objects(t, files["install.yaml"])
	for _, kind := range []string{
		"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Deployment", "Namespace", "PodDisruptionBudget",
		"Role", "RoleBinding", "Service", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	} {
		if len(kinds[kind]) == 0 {
			t.Errorf("install.yaml has no %s", kind)
		}
	}
	if diff := cmp.Diff(map[string][]string{"CustomResourceDefinition": kinds["CustomResourceDefinition"]}, objects(t, files["crds.yaml"])); diff != "" {
		t.Errorf("crds.yaml (-CRDs of install.yaml +got):\n%s", diff)
	}
	images := regexp.MustCompile(`(?m)^ +image: (.*)$`).FindAllStringSubmatch(string(files["install.yaml"]), -1)
	if len(images) != 1 || images[0][1] != reference {
		t.Errorf("images are %q, want one: %s", images, reference)
	}
}

// objects returns the names of all objects by kind. No object may come twice.
func objects(t *testing.T, content []byte) map[string][]string {
	t.Helper()
	kinds := map[string][]string{}
	for i, document := range strings.Split(string(content), "\n---\n")[1:] { // comments come first
		var object struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind == "" {
			t.Fatalf("object %d: kind %q, error %v", i, object.Kind, err)
		}
		name := object.Metadata.Namespace + "/" + object.Metadata.Name
		if slices.Contains(kinds[object.Kind], name) {
			t.Errorf("%s %s comes twice", object.Kind, name)
		}
		kinds[object.Kind] = append(kinds[object.Kind], name)
	}
	return kinds
}

// checkPlugin checks that krew finds each archive, its checksum, and the program in it.
func checkPlugin(t *testing.T, files map[string][]byte) {
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(files["scm.yaml"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != "v1.2.3" {
		t.Fatalf("manifest %+v", manifest)
	}
	for _, platform := range manifest.Spec.Platforms {
		file, found := strings.CutPrefix(platform.URI, repository+"/releases/download/v1.2.3/")
		if !found || platform.SHA256 != sum(files[file]) {
			t.Errorf("%s has checksum %s, want %s", platform.URI, platform.SHA256, sum(files[file]))
		}
		system := platform.Selector.MatchLabels["os"]
		members := unpack(t, files[file])
		if got, want := string(members[platform.Bin]), "the plugin for "+system; got != want || !strings.Contains(file, system) {
			t.Errorf("%s: %s is %q, want %q", file, platform.Bin, got, want)
		}
		if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, []string{"LICENSE", platform.Bin, "licenses.txt"}) {
			t.Errorf("%s has %q", file, got)
		}
	}
}

// checkComponents checks that an overlay over install.yaml can select each component, the fence
// and the monitoring.
func (b builder) checkComponents(t *testing.T, files map[string][]byte, reference string) {
	directory := t.TempDir()
	names := map[string]bool{}
	for path, content := range unpack(t, files["components.tar.gz"]) {
		file := filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if path := filepath.Dir(path); filepath.Dir(path) == "components" {
			names[path] = true
		}
	}
	if len(names) < 3 {
		t.Errorf("components %v, want at least 3", names)
	}
	overlay := "resources: [install.yaml, fence, monitoring]\ncomponents: [" + strings.Join(slices.Sorted(maps.Keys(names)), ", ") + "]\n"
	for file, content := range map[string][]byte{"install.yaml": files["install.yaml"], "kustomization.yaml": []byte(overlay)} {
		if err := os.WriteFile(filepath.Join(directory, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built, err := b.run("install", directory)
	if err != nil {
		t.Fatalf("%v\n%s", err, built)
	}
	if !strings.Contains(built, "image: "+reference+"\n") || !strings.Contains(built, "kind: NetworkPolicy\n") {
		t.Errorf("the overlay does not have the image or the NetworkPolicy:\n%s", built)
	}
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
