// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modules finds what is linked into the daemon, and under which licences.
package modules

import (
	"cmp"
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
	// Std stands for the standard library among modules.
	Std = "std"
	// Own is what the paths of our own modules begin with.
	Own = "samplecontroller.io/"
	// Main is the package of the daemon's program.
	Main = "./cmd/sample-controller-manager"
)

// Module is one that is linked into the daemon.
type Module struct {
	// Path and Version of the module. That of the standard library is not known.
	Path, Version string
	// Files are the paths of its licences and notices, sorted.
	Files []string
	// Licenses are what these files say, as SPDX names it, sorted.
	Licenses []string
}

// Linked returns the modules of others that a program for Linux on one of the given
// architectures is linked of, sorted by path, with their licences. It reads only what is
// in the module cache. All that is wrong with the licences is in the error.
func Linked(root string, architectures ...string) ([]Module, error) {
	byPath := map[string]*Module{}
	files := map[string]map[string]bool{} // by module
	note := func(path, version, top, directory string) error {
		if byPath[path] == nil {
			byPath[path], files[path] = &Module{Path: path, Version: version}, map[string]bool{}
		}
		found, err := between(top, directory)
		for _, file := range found {
			files[path][file] = true
		}
		return err
	}
	for _, architecture := range architectures {
		packages, err := list(root, architecture)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			switch {
			case p.Standard:
				err = note(Std, "", p.Root, p.Root)
			case !strings.HasPrefix(p.Module.Path, Own):
				err = note(p.Module.Path, p.Module.Version, p.Module.Dir, p.Dir)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	var modules []Module
	var errs []error
	for path, m := range byPath {
		m.Files = slices.Sorted(maps.Keys(files[path]))
		var err error
		if m.Licenses, err = licensesOf(m.Files); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
		modules = append(modules, *m)
	}
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, errors.Join(errs...)
}

// listed is what `go list` says of a package.
type listed struct {
	Dir, Root string
	Standard  bool
	Module    struct{ Path, Version, Dir string }
}

// list returns all packages of the program.
func list(root, architecture string) (packages []listed, err error) {
	command := exec.Command("go", "list", "-deps", "-json=Dir,Root,Standard,Module", Main)
	command.Dir = root
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		packages = append(packages, p)
	}
}

// between returns the licences and notices in a directory and all above it, up to top: a
// package that was taken from elsewhere has its own.
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
