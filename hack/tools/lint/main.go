// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lint replaces the checks of go vet, with `go vet -vettool`, and includes them. The
// go command caches its results per package.
//
// config.go configures the checks, and imports.go the allowed imports.
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
