// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// RepositoryRoot returns the nearest directory, from the working directory upwards, that has
// this package. It cannot use the path of this source file, which a binary built with -trimpath
// does not know.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	for dir := start; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if isFile(filepath.Join(dir, "hack", "test", "cluster", "root.go")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("finding the repository: neither %q nor a directory above it has hack/test/cluster (%v)", start, err)
}
