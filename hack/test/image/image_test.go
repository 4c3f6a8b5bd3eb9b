// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// makeArchive builds an image for two platforms in a new directory with the given umask. The
// binaries are dummies, because the test looks only at what is around them.
func makeArchive(t *testing.T, tool, umask string) []byte {
	t.Helper()
	directory := t.TempDir()
	for name, content := range map[string]string{
		"amd64": "the one for amd64", "arm64": "the one for arm64", "licenses.txt": "the licenses",
		"amd64.json": "the SBOM for amd64", "arm64.json": "the SBOM for arm64",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("bash", "-c", `umask "$0" && exec "$@"`, umask, tool, "archive",
		"-image=sample-controller-manager:latest", "-version=v1.2.3", "-revision=abc", "-created=1700000000",
		"-cryptography=standard",
		"-licenses=licenses.txt", "-output=archive", "linux/amd64=amd64,amd64.json", "linux/arm64=arm64,arm64.json")
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	archive, err := os.ReadFile(filepath.Join(directory, "archive"))
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// buildTool builds the program that builds the image.
func buildTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "release")
	command := exec.Command("go", "build", "-C", "../../tools/release", "-o", tool, ".")
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	return tool
}

// filesOf returns the files in a tar, and their headers.
func filesOf(t *testing.T, data []byte) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	contents, headers := map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return contents, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[header.Name], headers[header.Name] = content, header
	}
}

// descriptor is how one part of an image refers to another.
type descriptor struct {
	MediaType, Digest string
	ArtifactType      string
	Platform          struct{ OS, Architecture string }
	Annotations       map[string]string
}

// blobs are the parts of an image, by their paths in the archive.
type blobs map[string][]byte

// read returns the referenced part and checks its digest.
func (b blobs) read(t *testing.T, d descriptor, into any) []byte {
	t.Helper()
	content := b["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if sum := sha256.Sum256(content); "sha256:"+hex.EncodeToString(sum[:]) != d.Digest {
		t.Fatalf("%s is missing or does not match its digest", d.Digest)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatalf("%s: %v", d.Digest, err)
		}
	}
	return content
}

type manifests struct{ Manifests []descriptor }

func TestImage(t *testing.T) {
	tool := buildTool(t)
	archive := makeArchive(t, tool, "022")
	if !bytes.Equal(archive, makeArchive(t, tool, "077")) {
		t.Error("an image built elsewhere with another umask differs")
	}
	files, _ := filesOf(t, archive)
	parts := blobs(files)
	var top, index manifests
	if err := json.Unmarshal(parts["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %v, %s", err, parts["index.json"])
	}
	for _, name := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if got, want := top.Manifests[0].Annotations[name], "docker.io/library/sample-controller-manager:latest"; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	parts.read(t, top.Manifests[0], &index)
	var platforms []string
	for i, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		if d.Platform.OS == "linux" {
			parts.checkImage(t, d)
		} else {
			parts.checkReferrer(t, d, index.Manifests[i-2])
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64", "unknown/unknown", "unknown/unknown"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// checkReferrer checks that a manifest attaches the image's SBOM to it, and is not taken for an
// image.
func (b blobs) checkReferrer(t *testing.T, d, image descriptor) {
	t.Helper()
	const bomType = "application/vnd.cyclonedx+json"
	var manifest struct {
		Config, Subject descriptor
		Layers          []descriptor
	}
	b.read(t, d, &manifest)
	if manifest.Config.MediaType != bomType || d.ArtifactType != bomType {
		t.Errorf("types are %q in the manifest and %q in the index, want %s", manifest.Config.MediaType, d.ArtifactType, bomType)
	}
	if manifest.Subject.Digest != image.Digest || manifest.Subject.MediaType != image.MediaType {
		t.Errorf("subject is %+v, want %+v", manifest.Subject, image)
	}
	if d.Annotations["vnd.docker.reference.type"] != "attestation-manifest" || d.Annotations["vnd.docker.reference.digest"] != image.Digest {
		t.Errorf("annotations are %v, want those of an attestation of %s", d.Annotations, image.Digest)
	}
	b.read(t, manifest.Config, nil)
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != bomType {
		t.Fatalf("layers are %+v, want one of type %s", manifest.Layers, bomType)
	}
	if bom := b.read(t, manifest.Layers[0], nil); string(bom) != "the SBOM for "+image.Platform.Architecture {
		t.Errorf("layer is %q, want the SBOM for %s", bom, image.Platform.Architecture)
	}
}

// imageConfig is the part of the image configuration that container runtimes use.
type imageConfig struct {
	OS, Architecture string
	Config           struct {
		User            string
		Entrypoint, Cmd []string
		Env             []string
		Volumes         map[string]any
		Labels          map[string]string
	}
}

// checkImage checks that the image runs the binary as a user who cannot write any of its
// files.
func (b blobs) checkImage(t *testing.T, d descriptor) {
	t.Helper()
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	b.read(t, d, &manifest)
	var config, want imageConfig
	b.read(t, manifest.Config, &config)
	want.OS, want.Architecture = d.Platform.OS, d.Platform.Architecture
	want.Config.User = "65532:65532"
	want.Config.Entrypoint = []string{"/sample-controller-manager"}
	want.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "sample-controller-manager",
		"org.opencontainers.image.version":  "v1.2.3",
		"org.opencontainers.image.revision": "abc",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"io.samplecontroller.toolchain":     runtime.Version(),
		"io.samplecontroller.cryptography":  "standard",
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("%s: config (-want +got):\n%s", d.Platform.Architecture, diff)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("%s: %d layers, want 1", d.Platform.Architecture, len(manifest.Layers))
	}
	r, err := gzip.NewReader(bytes.NewReader(b.read(t, manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	contents, headers := filesOf(t, layer)
	if len(contents) != 2 || string(contents["sample-controller-manager"]) != "the one for "+d.Platform.Architecture || string(contents["licenses.txt"]) != "the licenses" {
		t.Errorf("%s: files %q", d.Platform.Architecture, contents)
	}
	for name, header := range headers {
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o222 != 0 || header.Mode&0o444 != 0o444 ||
			header.Typeflag != tar.TypeReg {
			t.Errorf("%s: %s belongs to user %d and has mode %o, want it to be root's and read-only for all", d.Platform.Architecture, name, header.Uid, header.Mode)
		}
	}
	if mode := headers["sample-controller-manager"].Mode; mode != 0o555 {
		t.Errorf("%s: mode of the binary is %o, want 555", d.Platform.Architecture, mode)
	}
}
