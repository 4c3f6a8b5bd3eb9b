// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controlplane combines all programs of the local cluster. It runs the one whose name
// it is called by, through a link. The programs share most of their code, so the combined
// binary takes a third of the build time and of the disk space.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs maps a name to the function to run. It returns the exit code.
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
