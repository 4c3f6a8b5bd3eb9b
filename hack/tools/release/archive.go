// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// member is a file in an archive.
type member struct {
	path, from string
	mode       int64
}

// pack writes a tar of the files. It depends only on their content.
func pack(output io.Writer, members []member, modified time.Time) error {
	w := tar.NewWriter(output)
	for _, m := range members {
		content, err := os.ReadFile(m.from)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: m.path, Size: int64(len(content)), Mode: m.mode, ModTime: modified,
			Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeCompressed writes a compressed tar of the files to the release.
func (o options) writeCompressed(file string, members []member) error {
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	if err := errors.Join(pack(compressed, members, o.created), compressed.Close()); err != nil {
		return err
	}
	return o.writeFile(file, buffer.String())
}

// membersOf returns the files below directories of a directory, sorted by name.
func membersOf(top string, directories ...string) (members []member, err error) {
	for _, directory := range directories {
		err := filepath.WalkDir(filepath.Join(top, directory), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) == ".md" {
				return err
			}
			path, err := filepath.Rel(top, file)
			members = append(members, member{filepath.ToSlash(path), file, 0o644})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// writeComponents writes what an overlay adds to install.yaml.
func (o options) writeComponents() error {
	members, err := membersOf("manifests", "components", "fence", "monitoring")
	if err != nil {
		return err
	}
	return o.writeCompressed("components.tar.gz", members)
}
