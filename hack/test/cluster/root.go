// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// rootModule is the module whose directory is the root of the repository.
const rootModule = "samplecontroller.io/sample-controller-manager"

// RepositoryRoot returns the nearest directory, from the working directory upwards, whose
// go.mod is that of the root module. It cannot use the path of this source file, which a
// binary built with -trimpath does not know.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	isRoot := regexp.MustCompile(`(?m)^module ` + regexp.QuoteMeta(rootModule) + `$`)
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		if isRoot.Match(content) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: neither %s nor a directory above it holds module %s", start, rootModule)
		}
	}
}
