// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	bomType     = "application/vnd.cyclonedx+json"
	emptyType   = "application/vnd.oci.empty.v1+json"
	emptyConfig = "{}"
)

// referrer returns the manifest of an SBOM that refers to the image. It is listed in the index
// beside the images, so that whatever copies the index copies the SBOM, and registries return it
// as a referrer of the image. The platform and the annotations are those of BuildKit's
// attestations: they keep container runtimes from taking it for an image.
func referrer(image v1.Image, bom string) (mutate.IndexAddendum, error) {
	none := mutate.IndexAddendum{}
	content, err := os.ReadFile(bom)
	if err != nil {
		return none, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return none, err
	}
	subject.ArtifactType = "" // belongs in an index only
	layer := static.NewLayer(content, bomType)
	described, err := partial.Descriptor(layer)
	if err != nil {
		return none, err
	}
	config, size, err := v1.SHA256(bytes.NewReader([]byte(emptyConfig)))
	if err != nil {
		return none, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  bomType,
		Config:        v1.Descriptor{MediaType: emptyType, Digest: config, Size: size},
		Layers:        []v1.Descriptor{*described},
		Subject:       subject,
	})
	if err != nil {
		return none, err
	}
	attached, err := partial.CompressedToImage(artifact{manifest: manifest, layer: layer})
	if err != nil {
		return none, err
	}
	return mutate.IndexAddendum{Add: attached, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
		Annotations: map[string]string{
			"vnd.docker.reference.digest": subject.Digest.String(),
			"vnd.docker.reference.type":   "attestation-manifest",
		},
	}}, nil
}

// artifact is a manifest with one layer and an empty config. It implements
// [partial.CompressedImageCore].
type artifact struct {
	manifest []byte
	layer    v1.Layer
}

func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

func (a artifact) RawConfigFile() ([]byte, error) { return []byte(emptyConfig), nil }

func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.layer.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("no layer %s", digest)
	}
	return a.layer, nil
}
