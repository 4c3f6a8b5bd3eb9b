// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// writeArchive writes an OCI archive with an image for each binary, given as
// linux/amd64=FILE, and prints the digest of their index.
func (o options) writeArchive(binaries []string) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return err
	}
	var index v1.ImageIndex = empty.Index
	for _, given := range binaries {
		platform, file, _ := strings.Cut(given, "=")
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return err
		}
		image, err := o.image(*parsed, file)
		if err != nil {
			return fmt.Errorf("making the image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: parsed}})
	}
	directory, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return err
	}
	// The first is for containerd, the second is the standard.
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          qualified(tag),
		"org.opencontainers.image.ref.name": qualified(tag),
	})
	if err := path.AppendIndex(index, names); err != nil {
		return err
	}
	if err := o.tar(directory); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

// qualified returns the name that container runtimes make of a short one, or they would
// not find the image under the name that a Pod uses.
func qualified(tag name.Tag) string {
	if tag.RegistryStr() == name.DefaultRegistry { // which is an alias
		return "docker.io/" + tag.RepositoryStr() + ":" + tag.TagStr()
	}
	return tag.Name()
}

// tar writes the files in the directory to the output, in the order of their names.
func (o options) tar(directory string) (err error) {
	output, err := os.Create(o.output)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := output.Close(); err == nil {
			err = closeErr
		}
	}()
	w := tar.NewWriter(output)
	err = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(directory, path)
		if err != nil {
			return err
		}
		return writeFile(w, filepath.ToSlash(relative), content, 0o644, o.created)
	})
	if err != nil {
		return err
	}
	return w.Close()
}
