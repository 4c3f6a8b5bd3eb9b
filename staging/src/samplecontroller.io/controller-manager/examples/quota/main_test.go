// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README shows main.go in full, and promises that it is short.
func TestReadmeShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	if diff := cmp.Diff(string(program), shown); diff != "" {
		t.Errorf("README.md does not show examples/quota/main.go as it is: copy it (-main.go +README.md):\n%s", diff)
	}
	_, body, _ := strings.Cut(string(program), "\n)\n") // after the imports
	if lines := strings.Count(body, "\n"); lines > 60 {
		t.Errorf("main.go has %d lines after its imports, want at most 60", lines)
	}
}
