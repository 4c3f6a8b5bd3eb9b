// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	std = "std" // the standard library, as a module
	own = "samplecontroller.io/"
)

// module is a third-party module that is linked into a command.
type module struct {
	path, version string   // the version of the standard library is empty
	files         []string // paths of its licenses and notices, sorted
	licenses      []string // SPDX identifiers, sorted
}

// linkedModules returns the third-party modules that a command in cmd links on any of the
// platforms, such as linux/amd64, sorted by path. It reads only the module cache. The error has
// all problems with the licenses.
func linkedModules(command string, platforms ...string) ([]module, error) {
	byPath := map[string]module{}
	add := func(path, version, top, directory string) error {
		found, err := between(top, directory)
		byPath[path] = module{path: path, version: version, files: append(byPath[path].files, found...)}
		return err
	}
	for _, platform := range platforms {
		packages, err := list(command, platform)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			switch {
			case p.Standard:
				err = add(std, "", p.Root, p.Root)
			case !strings.HasPrefix(p.Module.Path, own):
				err = add(p.Module.Path, p.Module.Version, p.Module.Dir, p.Dir)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	var modules []module
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		m := byPath[path]
		slices.Sort(m.files)
		m.files = slices.Compact(m.files)
		var err error
		if m.licenses, err = licensesOf(m.files); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.path, m.version, err))
		}
		modules = append(modules, m)
	}
	return modules, errors.Join(errs...)
}

// listed is a package in the output of `go list`.
type listed struct {
	Dir, Root string
	Standard  bool
	Module    struct{ Path, Version, Dir string }
}

// list returns all packages of a command.
func list(command, platform string) (packages []listed, err error) {
	system, architecture, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Root,Standard,Module", "./cmd/"+command)
	// A FIPS build takes packages of the standard library from outside of its directory.
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFIPS140=off", "GOOS="+system, "GOARCH="+architecture)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		packages = append(packages, p)
	}
}

// between returns the licenses and notices in a directory and its parents, up to top: packages
// copied from elsewhere have their own.
func between(top, directory string) (files []string, err error) {
	for {
		entries, err := os.ReadDir(directory)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && (isLicense(entry.Name()) || isNotice(entry.Name())) {
				files = append(files, filepath.Join(directory, entry.Name()))
			}
		}
		if directory == top {
			return files, nil
		}
		if directory = filepath.Dir(directory); !strings.HasPrefix(directory, top) {
			return nil, fmt.Errorf("%s is not in %s", directory, top)
		}
	}
}
