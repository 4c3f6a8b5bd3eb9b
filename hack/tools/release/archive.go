// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// imageDigest returns the digest of the image in an OCI archive.
func imageDigest(archive string) (string, error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%s has no index.json", archive)
		}
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", archive, err)
		}
		if header.Name != "index.json" {
			continue
		}
		var index struct{ Manifests []struct{ Digest string } }
		if err := json.NewDecoder(r).Decode(&index); err != nil {
			return "", fmt.Errorf("reading %s: %w", archive, err)
		}
		if len(index.Manifests) != 1 {
			return "", fmt.Errorf("%s has %d images, want 1", archive, len(index.Manifests))
		}
		return index.Manifests[0].Digest, nil
	}
}

// member is a file in an archive.
type member struct {
	path, from string
	mode       int64
}

// pack returns a compressed tar of the files. It depends only on their content.
func pack(members []member, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	w := tar.NewWriter(compressed)
	for _, m := range members {
		content, err := os.ReadFile(m.from)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: m.path, Size: int64(len(content)), Mode: m.mode, ModTime: modified, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// writeComponents writes what an overlay adds to install.yaml.
func (o options) writeComponents() error {
	const manifests = "manifests"
	var members []member
	for _, directory := range []string{"components", "fence", "monitoring"} {
		err := filepath.WalkDir(filepath.Join(manifests, directory), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) == ".md" {
				return err
			}
			path, err := filepath.Rel(manifests, file)
			members = append(members, member{filepath.ToSlash(path), file, 0o644})
			return err
		})
		if err != nil {
			return err
		}
	}
	content, err := pack(members, o.created)
	if err != nil {
		return err
	}
	return o.writeFile("components.tar.gz", string(content))
}
