// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// newImage returns an image with only the binary and the licenses. The binary is static and
// writes no files. It finds the certificates that it trusts with its Pod's credentials.
func (o options) newImage(platform v1.Platform, binary string) (v1.Image, error) {
	content, err := o.layer(binary)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image,
		mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "hack/build-image.sh"}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: o.created}
	config.Config = v1.Config{
		// A numeric user, because there is no /etc/passwd and runAsNonRoot must see that it is
		// not 0.
		User:         "65532:65532",
		Entrypoint:   []string{"/" + daemon},
		ExposedPorts: map[string]struct{}{"10261/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    daemon,
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"io.samplecontroller.toolchain":     runtime.Version(),
			"io.samplecontroller.cryptography":  o.cryptography,
		},
	}
	return mutate.ConfigFile(image, config)
}

// layer returns a layer of read-only files that belong to root.
func (o options) layer(binary string) ([]byte, error) {
	var buffer bytes.Buffer
	err := pack(&buffer, []member{{"licenses.txt", o.licenses, 0o444}, {daemon, binary, 0o555}}, o.created)
	return buffer.Bytes(), err
}
