// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	checksumsFile  = "SHA256SUMS"
	provenanceFile = "provenance.intoto.json"
)

// write completes the release in the output directory, which has the image and its SBOMs.
func (o options) write() error {
	section, err := changes(o.version)
	if err != nil {
		return err
	}
	digest, err := imageDigest(filepath.Join(o.output, o.archive()))
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return o.writeObjects(digest) },
		o.writeComponents,
		o.writePlugin,
		func() error { return o.writeFile("release-notes.md", o.notes(section, digest)) },
		o.writeProvenance,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	sums, err := o.checksums()
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&text, "%s  %s\n", s.sha256, s.file)
	}
	return o.writeFile(checksumsFile, text.String())
}

// archive returns the name of the file with the image.
func (o options) archive() string { return daemon + "-" + o.tag + ".tar" }

// reference returns what a Pod names the image. The digest is only known to a registry: nodes
// that have loaded the archive know the image by its tag.
func (o options) reference(digest string) string {
	if o.image == "" {
		return daemon + ":" + o.tag
	}
	return o.image + ":" + o.tag + "@" + digest
}

// origin says how the image gets to where the Pods look for it.
func (o options) origin(digest string) string {
	if o.image == "" {
		return fmt.Sprintf("NO REGISTRY HOLDS THE IMAGE %s, and the Pods do not start without it.\n"+
			"Load %s on every node, for example with\n"+
			"  ctr -n k8s.io images import %[2]s\n"+
			"or make the release again with IMAGE=<registry>/<name>.\n", o.reference(digest), o.archive())
	}
	return fmt.Sprintf("The Pods run the image\n  %s\nThe release does not push it. Push it first with\n"+
		"  skopeo copy --all --preserve-digests oci-archive:%s docker://%s:%s\n", o.reference(digest), o.archive(), o.image, o.tag)
}

// writeObjects writes all objects, and the CRDs alone.
func (o options) writeObjects(digest string) error {
	const crd = "CustomResourceDefinition"
	image := o.reference(digest)
	all, err := build(o.args, image, func(string) bool { return true })
	if err != nil {
		return err
	}
	if !strings.Contains(string(all), "image: "+image) {
		return fmt.Errorf("none of %q runs the image %s", o.args, daemon)
	}
	crds, err := build(o.args, image, func(kind string) bool { return kind == crd })
	if err != nil {
		return err
	}
	title := fmt.Sprintf("# %s %s.%%s Install with: kubectl apply -f %%s\n", daemon, o.tag)
	warning := "#\n# " + strings.ReplaceAll(strings.TrimSpace(o.origin(digest)), "\n", "\n# ") + "\n"
	return errors.Join(
		o.writeFile("install.yaml", fmt.Sprintf(title, "", "install.yaml")+warning+string(all)),
		o.writeFile("crds.yaml", fmt.Sprintf(title, " The CRDs alone, which install.yaml also has.", "crds.yaml")+string(crds)))
}

// notes returns the release notes.
func (o options) notes(section, digest string) string {
	return fmt.Sprintf("# %s %s\n\n%s\n\n## Image and build\n\n```text\n%s```\n\n"+
		"Built from commit %s with %s. The digest of the image is `%s`.\n",
		daemon, o.tag, section, o.origin(digest), o.revision, toolchain(), digest)
}

func (o options) writeFile(file, content string) error {
	return os.WriteFile(filepath.Join(o.output, file), []byte(content), 0o644)
}

type checksum struct{ file, sha256 string }

// checksums returns the checksum of each file written so far, sorted by name.
func (o options) checksums() ([]checksum, error) {
	entries, err := os.ReadDir(o.output)
	if err != nil {
		return nil, err
	}
	var sums []checksum
	for _, entry := range entries {
		sum, err := sumOf(filepath.Join(o.output, entry.Name()))
		if err != nil {
			return nil, err
		}
		sums = append(sums, checksum{entry.Name(), sum})
	}
	return sums, nil
}

func sumOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
