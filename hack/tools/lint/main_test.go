// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestViolations runs the linters as hack/verify-lint.sh does, over testdata.
func TestViolations(t *testing.T) {
	lint := filepath.Join(t.TempDir(), "lint")
	if out, err := exec.Command("go", "build", "-o", lint, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the linters: %v\n%s", err, out)
	}

	archive, err := txtar.ParseFile("testdata/violations.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "staging", "src", "samplecontroller.io")
	if err := os.CopyFS(module, files); err != nil {
		t.Fatal(err)
	}
	want := wanted(t, files)

	vet := exec.Command("go", "vet", "-vettool="+lint, "./...")
	vet.Dir = module
	vet.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := vet.CombinedOutput()
	if err == nil {
		t.Error("go vet passes, want it to fail")
	}
	var got []string
	for _, m := range finding.FindAllStringSubmatch(string(out), -1) {
		got = append(got, fmt.Sprintf("%s:%s %s", m[1], m[2], m[3]))
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("not reported: %s", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("unexpected report: %s", g)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

var (
	finding = regexp.MustCompile(`(?m)^(?:vet: |\./)?(\S+\.go):(\d+):\d+: .* \((\w+)\)$`)
	comment = regexp.MustCompile(`// want (\w+)$`)
)

// wanted returns the findings that the files expect, as "<file>:<line> <check>".
func wanted(t *testing.T, files fs.FS) []string {
	var all []string
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		for i, line := range strings.Split(string(content), "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				all = append(all, fmt.Sprintf("%s:%d %s", path, i+1, m[1]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("testdata has no violations")
	}
	return all
}
