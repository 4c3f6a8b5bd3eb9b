// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane is every program of the local cluster in one: it runs the one that
// it is called by the name of, as the links to it are. Linked together they share most of
// their code, so they take a third of the time to build and of the space on disk.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs maps a name to what runs under it. It returns the exit code.
var programs = map[string]func() int{}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s is not one of: %s\n", name, strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}
