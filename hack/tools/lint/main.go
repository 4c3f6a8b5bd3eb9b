// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint is what `go vet -vettool` runs instead of its own checks, which are
// among these. The go command caches what it finds, package by package.
//
// config.go says which checks are on, imports.go which package may import which.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	analyzers, err := analyzers()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
	unitchecker.Main(analyzers...)
}
