// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

const staging = "../../staging/src/samplecontroller.io/"

// TestTheManualTellsOfEachWord looks for each constant in a table of the manual.
func TestTheManualTellsOfEachWord(t *testing.T) {
	text, err := os.ReadFile("../../manifests/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, source := range map[string]struct {
		file  string
		least int // so that to find none is a failure
	}{
		"condition or reason": {staging + "api/workload/v1alpha1/conditions.go", 11},
		"state":               {staging + "controller-manager/supervisor/status.go", 7},
	} {
		words := constants(t, source.file)
		if len(words) < source.least {
			t.Errorf("%s has %d constants, want at least %d", source.file, len(words), source.least)
		}
		for _, word := range words {
			if !strings.Contains(string(text), "| `"+word+"` |") {
				t.Errorf("manifests/README.md has no row for the %s `%s` of %s", what, word, source.file)
			}
		}
	}
}

// constants returns the strings that are declared as constants in a file.
func constants(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, declaration := range parsed.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.CONST {
			ast.Inspect(d, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if word, err := strconv.Unquote(literal.Value); err == nil {
						all = append(all, word)
					}
				}
				return true
			})
		}
	}
	return all
}
