// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command unused compares what the manifests grant to the daemon with what it used in the
// end-to-end tests, and fails if a grant was never used.
//
// Each folder of tests adds two files to the directory that E2E_PRIVILEGES names,
// <folder>.granted and <folder>.used, with one grant per line.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mayBeUnused are grants that the daemon does not use in the tests, and why it has them.
var mayBeUnused = map[string]string{
	"update foos/finalizers.samplecontroller.k8s.io":    "admission requires it, not the daemon: TestFinalizersGrantIsNeeded",
	"update icecreams/finalizers.controller.nicoleh.io": "as for Foos",
	"list pods":             "for API servers without streaming lists (WatchList)",
	"list replicasets.apps": "as for Pods",
	"list configmaps/extension-apiserver-authentication": "as for Pods",
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: unused DIRECTORY\n\nDIRECTORY is the value of E2E_PRIVILEGES during the tests.")
		os.Exit(2)
	}
	granted, used, err := read(os.Args[1])
	if err == nil {
		err = check(granted, used)
		fmt.Printf("privileges: the daemon has %d rights; all are used or explained: %t\n", len(granted), err == nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type set map[string]bool

// read returns what was granted and used in all folders together.
func read(dir string) (granted, used set, err error) {
	granted, used = set{}, set{}
	for extension, all := range map[string]set{"granted": granted, "used": used} {
		files, err := filepath.Glob(filepath.Join(dir, "*."+extension))
		if err != nil {
			return nil, nil, err
		}
		if len(files) == 0 {
			return nil, nil, fmt.Errorf("reading privileges: no file *.%s in %s: run the end-to-end tests with E2E_PRIVILEGES=%s", extension, dir, dir)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, nil, fmt.Errorf("reading privileges: %w", err)
			}
			for line := range strings.Lines(string(content)) {
				all[strings.TrimSpace(line)] = true
			}
		}
	}
	return granted, used, nil
}

// check reports grants that were never used, and explanations of grants that no longer exist.
func check(granted, used set) error {
	var problems []error
	for _, grant := range slices.Sorted(maps.Keys(granted)) {
		if !used[grant] && mayBeUnused[grant] == "" {
			problems = append(problems, fmt.Errorf("the daemon may %s, but never did in any test: remove the grant from the manifests, or explain it in hack/e2e/unused", grant))
		}
	}
	for _, grant := range slices.Sorted(maps.Keys(mayBeUnused)) {
		if !granted[grant] {
			problems = append(problems, fmt.Errorf("hack/e2e/unused explains why the daemon may %s, but that is not granted: delete the line", grant))
		}
	}
	return errors.Join(problems...)
}
