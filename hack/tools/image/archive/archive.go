// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// platformImage is an image for one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// writeArchive writes an OCI archive with the images under one index, and returns the
// digest of that.
func (o options) writeArchive(tag name.Tag, images []platformImage) (v1.Hash, error) {
	var index v1.ImageIndex = empty.Index
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	directory, err := os.MkdirTemp("", "image")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(directory)
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	// By the first containerd knows the image, by the second who follows the standard.
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          qualified(tag),
		"org.opencontainers.image.ref.name": qualified(tag),
	})
	if err := path.AppendIndex(index, names); err != nil {
		return v1.Hash{}, err
	}
	if err := o.tar(directory); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
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
