// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controllermanager

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackageDocsBeginWithExample checks that the first code in the documentation of each
// package that programs can use, and of each internal one with examples, is part of its examples,
// which compile.
func TestPackageDocsBeginWithExample(t *testing.T) {
	packages, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	internal, err := filepath.Glob("internal/*/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	packages = append(packages, internal...)
	checked := map[string]bool{}
	for _, file := range packages {
		dir := filepath.Dir(file)
		if checked[dir] || dir == "examples" {
			continue
		}
		checked[dir] = true
		shown := firstCode(t, dir)
		if lines := strings.Count(shown, "\n"); lines < 5 || lines > 18 {
			t.Errorf("go doc ./%s begins with %d lines of code, want about 10", dir, lines)
		}
		examples, err := os.ReadFile(filepath.Join(dir, "example_test.go"))
		if err != nil || !strings.Contains(unindented(string(examples)), unindented(shown)) {
			t.Errorf("go doc ./%s shows code that is not in %s/example_test.go, %v:\n%s", dir, dir, err, shown)
		}
	}
	if len(checked) < 12 {
		t.Errorf("checked %d packages, want all", len(checked))
	}
}

var indent = regexp.MustCompile(`(?m)^\t+`)

func unindented(code string) string { return indent.ReplaceAllString(code, "") }

// firstCode returns the first code in the documentation of a package, ignoring tables of
// paths.
func firstCode(t *testing.T, dir string) string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil,
			parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if code := firstCodeOf(file); code != "" && !strings.HasSuffix(name, "_test.go") {
			return code
		}
	}
	return ""
}

func firstCodeOf(file *ast.File) string {
	for _, block := range new(comment.Parser).Parse(file.Doc.Text()).Content {
		if code, ok := block.(*comment.Code); ok && !strings.HasPrefix(code.Text, "/") {
			return code.Text
		}
	}
	return ""
}

// TestReadmeShowsExample checks that the first two pieces of code in the README are in the example of
// three controllers.
func TestReadmeShowsExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.SplitN(string(readme), "```go\n", 4)
	for i, file := range []string{"examples/ops/backups.go", "examples/ops/main.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shown, _, _ := strings.Cut(blocks[i+1], "```\n")
		if lines := strings.Count(shown, "\n"); lines < 5 || lines > 40 || !strings.Contains(string(source), shown) {
			t.Errorf("README.md shows %d lines that are not in %s: copy them:\n%s", lines, file, shown)
		}
	}
}
