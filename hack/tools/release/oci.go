// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// writeArchive writes an OCI archive with an image for each binary and a referrer for its SBOM,
// given as linux/amd64=BINARY,SBOM, and prints the digest of the index.
func (o options) writeArchive() error {
	tag, err := name.NewTag(o.image)
	if err != nil {
		return err
	}
	index, err := o.index()
	if err != nil {
		return err
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
	// containerd reads the first annotation. The second is the standard.
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

// index returns an index with the images first, because some programs take the first entry.
func (o options) index() (v1.ImageIndex, error) {
	var images, referrers []mutate.IndexAddendum
	for _, given := range o.args {
		platform, files, _ := strings.Cut(given, "=")
		binary, bom, _ := strings.Cut(files, ",")
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return nil, err
		}
		image, err := o.newImage(*parsed, binary)
		if err != nil {
			return nil, fmt.Errorf("building the image for %s: %w", platform, err)
		}
		attached, err := referrer(image, bom)
		if err != nil {
			return nil, fmt.Errorf("attaching the SBOM for %s: %w", platform, err)
		}
		images = append(images, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: parsed}})
		referrers = append(referrers, attached)
	}
	return mutate.AppendManifests(empty.Index, append(images, referrers...)...), nil
}

// qualified expands a short name like container runtimes do. Otherwise they would not find the
// image under the name in a Pod.
func qualified(tag name.Tag) string {
	if tag.RegistryStr() == name.DefaultRegistry { // an alias of docker.io
		return "docker.io/" + tag.RepositoryStr() + ":" + tag.TagStr()
	}
	return tag.Name()
}

// tar writes the files in the directory to the output, sorted by name.
func (o options) tar(directory string) error {
	members, err := membersOf(directory, ".")
	if err != nil {
		return err
	}
	output, err := os.Create(o.output)
	if err != nil {
		return err
	}
	return errors.Join(pack(output, members, o.created), output.Close())
}
