// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is what `go help buildjson` and `go doc test2json` describe.
type event struct {
	Action, Package, Test, Output string
	ImportPath, FailedBuild       string
}

// report follows the tests of all packages of one go test.
type report struct {
	out, failures io.Writer
	verbose       bool
	builds        map[string][]string // what the compiler said, by import path
	packages      map[string]*suite
}

// suite is a package whose tests run.
type suite struct {
	own    []string // what it said outside of tests
	tests  map[string]*test
	failed bool // one of its tests has
}

// test is one that runs, or whose parent does.
type test struct {
	lines  []string
	all    []string // with those of its subtests, in the order in which they came
	ended  bool
	failed bool
}

func newReport(out, failures io.Writer, verbose bool) *report {
	return &report{out: out, failures: failures, verbose: verbose, builds: map[string][]string{}, packages: map[string]*suite{}}
}

func (r *report) add(e event) {
	switch {
	case e.Action == "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		fmt.Fprint(r.out, e.Output)
	case e.Package == "": // a build has failed: its packages will
	case e.Test == "":
		r.addToPackage(e)
	default:
		r.addToTest(r.suite(e.Package), e)
	}
}

func (r *report) suite(name string) *suite {
	if r.packages[name] == nil {
		r.packages[name] = &suite{tests: map[string]*test{}}
	}
	return r.packages[name]
}

func (r *report) addToPackage(e event) {
	s := r.suite(e.Package)
	switch e.Action {
	case "output":
		s.own = append(s.own, e.Output)
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
	case "pass":
		if !r.verbose {
			for _, line := range s.own {
				if strings.HasPrefix(line, "ok ") {
					fmt.Fprint(r.out, line)
				}
			}
		}
		delete(r.packages, e.Package)
	case "skip":
		delete(r.packages, e.Package) // it has no tests
	case "fail":
		r.endPackage(s, e)
		delete(r.packages, e.Package)
	}
}

func (r *report) addToTest(s *suite, e event) {
	top, _, isSubtest := strings.Cut(e.Test, "/")
	for _, name := range []string{top, e.Test} {
		if s.tests[name] == nil {
			s.tests[name] = &test{}
		}
	}
	t := s.tests[e.Test]
	switch e.Action {
	case "output":
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		if !strings.HasPrefix(e.Output, "=== ") {
			t.lines = append(t.lines, e.Output)
			s.tests[top].all = append(s.tests[top].all, e.Output)
		}
	case "pass", "skip", "fail":
		t.ended, t.failed = true, e.Action == "fail"
		if !isSubtest {
			r.endTest(s, e.Package, top)
		}
	}
}

// endTest forgets a test and its subtests, and tells of those that failed.
func (r *report) endTest(s *suite, pkg, top string) {
	if s.tests[top].failed && !r.verbose {
		fmt.Fprint(r.out, strings.Join(s.tests[top].all, ""))
	}
	var told []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(s.tests))) { // subtests first
		isSubtest := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if name != top && !strings.HasPrefix(name, top+"/") {
			continue
		}
		why := essence(s.tests[name].lines)
		// A test often has nothing to say but that a subtest of it failed.
		if s.tests[name].failed && (len(why) > 0 || !slices.ContainsFunc(told, isSubtest)) {
			s.failed = true
			told = append(told, name)
			r.tell(fmt.Sprintf("%s (%s)", name, pkg), why)
		}
		delete(s.tests, name)
	}
}

// endPackage tells of tests that never ended, because a panic or a timeout ended the
// process, and of a failure that is that of no test.
func (r *report) endPackage(s *suite, e event) {
	for _, t := range s.tests {
		t.failed = t.failed || !t.ended
	}
	for _, name := range slices.Sorted(maps.Keys(s.tests)) {
		if !strings.Contains(name, "/") {
			r.endTest(s, e.Package, name)
		}
	}
	if !r.verbose {
		fmt.Fprint(r.out, strings.Join(s.own, ""))
	}
	if !s.failed {
		r.tell(e.Package, essence(slices.Concat(r.builds[e.FailedBuild], s.own)))
	}
}

// tell writes what failed and why.
func (r *report) tell(what string, why []string) {
	fmt.Fprintf(r.failures, "Failed: %s\n", what)
	for _, line := range why {
		fmt.Fprintf(r.failures, "    %s\n", line)
	}
}
