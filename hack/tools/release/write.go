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
	"runtime"
	"strings"
)

const checksumsFile = "SHA256SUMS"

// write completes the release in the output directory, which has the image and its SBOMs.
func (o options) write() error {
	section, err := changes(o.version)
	if err != nil {
		return err
	}
	err = errors.Join(o.writeObjects(), o.writeComponents(), o.writePlugin(), o.writeFile("release-notes.md", o.notes(section)))
	if err != nil {
		return err
	}
	sums, err := o.checksums()
	return errors.Join(err, o.writeFile(checksumsFile, sums))
}

// archive returns the name of the file with the image.
func (o options) archive() string { return daemon + "-" + o.tag + ".tar" }

// reference returns what a Pod names the image. The digest is only known to a registry: nodes
// that have loaded the archive know the image by its tag.
func (o options) reference() string {
	if o.image == "" {
		return daemon + ":" + o.tag
	}
	return o.image + ":" + o.tag + "@" + o.digest
}

// origin says how the image gets to where the Pods look for it.
func (o options) origin() string {
	if o.image == "" {
		return fmt.Sprintf("NO REGISTRY HOLDS THE IMAGE %s, and the Pods do not start without it.\n"+
			"Load %s on every node, for example with\n"+
			"  ctr -n k8s.io images import %[2]s\n"+
			"or make the release again with IMAGE=<registry>/<name>.\n", o.reference(), o.archive())
	}
	return fmt.Sprintf("The Pods run the image\n  %s\nThe release does not push it. Push it first with\n"+
		"  skopeo copy --all --preserve-digests oci-archive:%s docker://%s:%s\n", o.reference(), o.archive(), o.image, o.tag)
}

// writeObjects writes all objects, and the CRDs alone.
func (o options) writeObjects() error {
	const crd = "CustomResourceDefinition"
	image := o.reference()
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
	warning := "#\n# " + strings.ReplaceAll(strings.TrimSpace(o.origin()), "\n", "\n# ") + "\n"
	return errors.Join(
		o.writeFile("install.yaml", fmt.Sprintf(title, "", "install.yaml")+warning+string(all)),
		o.writeFile("crds.yaml", fmt.Sprintf(title, " The CRDs alone, which install.yaml also has.", "crds.yaml")+string(crds)))
}

// notes returns the release notes. They have the command that makes the same bytes.
func (o options) notes(section string) string {
	return fmt.Sprintf("# %s %s\n\n%s\n\n## Image and build\n\n```text\n%s```\n\n"+
		"Built with %s. The digest of the image is `%s`. To build the same files:\n\n"+
		"```sh\ngit checkout %s\nmake release %s\n```\n",
		daemon, o.tag, section, o.origin(), runtime.Version(), o.digest, o.revision, o.variables)
}

func (o options) writeFile(file, content string) error {
	return os.WriteFile(filepath.Join(o.output, file), []byte(content), 0o644)
}

// checksums returns the checksum of each file written so far, sorted by name, as sha256sum prints them.
func (o options) checksums() (string, error) {
	entries, err := os.ReadDir(o.output)
	var sums strings.Builder
	for _, entry := range entries {
		sum, e := sumOf(filepath.Join(o.output, entry.Name()))
		err = errors.Join(err, e)
		fmt.Fprintf(&sums, "%s  %s\n", sum, entry.Name())
	}
	return sums.String(), err
}

func sumOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
