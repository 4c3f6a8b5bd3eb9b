// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const bomType = "application/vnd.cyclonedx+json"

// referrer returns the manifest of an SBOM that refers to the image. The type of its config says what
// it is. It is listed in the index beside the images, so that whatever copies the index copies the
// SBOM, and registries return it as a referrer of the image. The platform and the annotations are
// those of BuildKit's attestations: they keep container runtimes from taking it for an image.
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
	attached := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bomType)
	attached, err = mutate.AppendLayers(attached, static.NewLayer(content, bomType))
	if err != nil {
		return none, err
	}
	return mutate.IndexAddendum{Add: mutate.Subject(attached, *subject).(v1.Image), Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"},
		Annotations: map[string]string{
			"vnd.docker.reference.digest": subject.Digest.String(),
			"vnd.docker.reference.type":   "attestation-manifest",
		},
	}}, nil
}
