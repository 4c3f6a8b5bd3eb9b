// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root       = "../../.."
	repository = "https://repository.invalid/x"
	commit     = "0123456789012345678901234567890123456789"
	digest     = "sha256:" + commit
)

// builder builds releases in a copy of the parts of the repository that go into one, with a
// changelog of its own. The binaries are dummies.
type builder struct {
	directory string
}

// tool is the program that makes a release.
var tool string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "release-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(directory)
	tool = filepath.Join(directory, "release")
	command := exec.Command("go", "build", "-C", "../../tools/release", "-o", tool, ".")
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n%s", command, err, output)
		return 1
	}
	return m.Run()
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	b := builder{directory: t.TempDir()}
	if err := os.CopyFS(filepath.Join(b.directory, "manifests"), os.DirFS(filepath.Join(root, "manifests"))); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		".github/CHANGELOG.md": "# Changelog\n\n## v1.2.3\n\nIt is faster.\n\n## v1.2.2\n\nIt was slow.\n\n## v1.2.1\n\n",
		"LICENSE":              "the license", "builds/licenses.txt": "the licenses",
		"builds/linux-amd64/kubectl-scm": "the plugin for linux", "builds/windows-amd64/kubectl-scm.exe": "the plugin for windows",
		"image/sample-controller-manager-v1.2.3.tar": "the image", "image/sample-controller-manager-v1.2.3-linux-amd64.cdx.json": "the SBOM",
	} {
		file := filepath.Join(b.directory, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// run runs the program that writes releases.
func (b builder) run(args ...string) (output string, err error) {
	command := exec.Command(tool, args...)
	command.Dir = b.directory
	text, err := command.CombinedOutput()
	return string(text), err
}

// write writes a release of v1.2.3 and returns its files.
func (b builder) write(t *testing.T, flags ...string) map[string][]byte {
	t.Helper()
	directory := t.TempDir()
	if err := os.CopyFS(directory, os.DirFS(filepath.Join(b.directory, "image"))); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"write", "-version=v1.2.3", "-tag=v1.2.3", "-revision=" + commit, "-created=1700000000",
		"-digest=" + digest, "-variables=VERSION=v1.2.3 FIPS=0", "-repository=" + repository, "-builds=builds", "-output=" + directory,
	}, flags...)
	if output, err := b.run(append(args, kustomizations(t)...)...); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return filesOf(t, directory)
}

// kustomizations returns those that make up the installation.
func kustomizations(t *testing.T) []string {
	t.Helper()
	output, err := exec.Command("bash", "-c", `source ../../lib/kustomizations.sh && echo "${kustomizations[@]}"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(output))
}

func filesOf(t *testing.T, directory string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(directory, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// unpack returns the files in a compressed tar.
func unpack(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	uncompressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
