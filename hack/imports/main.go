// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command imports checks that the packages of this repository import only those
// that they may: the rules are in rules.go. Its arguments are the directories of
// the modules to check.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// rule allows imports among our own packages.
type rule struct {
	of      string
	may     []string
	inTests []string
}

// ban forbids packages in the dependencies of ours.
type ban struct {
	of, what, why string
}

// goPackage is what `go list` tells about a package.
type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	DepOnly      bool
}

func main() {
	var violations []string
	for _, dir := range os.Args[1:] {
		packages, err := list(dir)
		if err != nil {
			fmt.Fprintf(os.Stderr, "listing the packages of module %s: %v\n", dir, err)
			os.Exit(1)
		}
		violations = append(violations, check(packages)...)
	}
	if len(violations) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(violations, "\n"))
		fmt.Fprintln(os.Stderr, "Move the code to where it may import what it needs. If it is a rule that must change, it is in hack/imports/rules.go.")
		os.Exit(1)
	}
}

// list returns the packages of a module, and all that they depend on, by import path.
func list(dir string) (map[string]goPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,TestImports,XTestImports,DepOnly", "./...")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	packages := map[string]goPackage{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
}

// check says what the packages import against the rules and the bans.
func check(packages map[string]goPackage) []string {
	var violations []string
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		p := packages[path]
		if p.DepOnly {
			continue
		}
		r, place, ok := ruleOf(p.ImportPath)
		if !ok {
			violations = append(violations, fmt.Sprintf("%s belongs to no rule", p.ImportPath))
			continue
		}
		for _, imported := range p.Imports {
			if !r.allows(place, imported, false) {
				violations = append(violations, describe(p.ImportPath, imported, r.may))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if !r.allows(place, imported, true) {
				violations = append(violations, describe("a test of "+p.ImportPath, imported, slices.Concat(r.may, r.inTests)))
			}
		}
		for _, b := range bans {
			if _, ok := match(b.of, p.ImportPath); !ok {
				continue
			}
			if path := dependency(packages, p.ImportPath, b.what); path != nil {
				violations = append(violations, fmt.Sprintf("%s must not depend on %s, because %s; it does so by\n\t%s",
					p.ImportPath, b.what, b.why, strings.Join(path, "\n\t-> ")))
			}
		}
	}
	return violations
}

func describe(importer, imported string, allowed []string) string {
	if len(allowed) == 0 {
		return fmt.Sprintf("%s imports %s; of our packages it may import none", importer, imported)
	}
	return fmt.Sprintf("%s imports %s; of our packages it may import only\n\t%s", importer, imported, strings.Join(allowed, "\n\t"))
}

// ruleOf returns the rule that a package of ours belongs to, and the place that
// the rule's pattern has there.
func ruleOf(path string) (r rule, place string, ok bool) {
	for _, r := range rules {
		if place, ok := match(r.of, path); ok {
			return r, place, true
		}
	}
	return rule{}, "", false
}

// allows says whether a package at this place of the rule may import another.
func (r rule) allows(place, imported string, inTest bool) bool {
	importedRule, importedPlace, ours := ruleOf(imported)
	if !ours || (importedRule.of == r.of && importedPlace == place) {
		return true
	}
	allowed := r.may
	if inTest {
		allowed = slices.Concat(r.may, r.inTests)
	}
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		_, ok := match(pattern, imported)
		return ok
	})
}

// match says whether the pattern matches the path or a parent of it, and which.
func match(pattern, path string) (matched string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(have) < len(want) {
		return "", false
	}
	have = have[:len(want)]
	for i := range want {
		if want[i] != "*" && want[i] != have[i] {
			return "", false
		}
	}
	return strings.Join(have, "/"), true
}

// dependency returns the shortest chain of imports from a package to one that
// the pattern matches, or nil.
func dependency(packages map[string]goPackage, from, pattern string) []string {
	importer := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if _, ok := match(pattern, queue[0]); ok {
			var chain []string
			for p := queue[0]; p != ""; p = importer[p] {
				chain = append(chain, p)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, imported := range packages[queue[0]].Imports {
			if _, seen := importer[imported]; !seen {
				importer[imported] = queue[0]
				queue = append(queue, imported)
			}
		}
	}
	return nil
}
