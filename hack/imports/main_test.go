// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const foo, icecream = root + "/pkg/controller/foo", root + "/pkg/controller/icecream"

	for name, tc := range map[string]struct {
		packages []goPackage
		want     []string // what the only violation says; none if empty
	}{
		"a controller imports what it may": {
			packages: []goPackage{{ImportPath: foo, Imports: []string{"fmt", api + "/icecream/v1alpha1", library + "/reconcile", root + "/pkg/workload"}}},
		},
		"a controller imports a package below it": {
			packages: []goPackage{{ImportPath: foo, Imports: []string{foo + "/internal/x"}}},
		},
		"a controller imports its sibling": {
			packages: []goPackage{{ImportPath: foo, Imports: []string{icecream}}},
			want:     []string{foo + " imports " + icecream, "may import only", root + "/pkg/workload"},
		},
		"a controller imports the command": {
			packages: []goPackage{{ImportPath: foo, Imports: []string{app}}},
			want:     []string{foo + " imports " + app},
		},
		"a test is held to the rules": {
			packages: []goPackage{{ImportPath: foo, XTestImports: []string{foo, icecream}}},
			want:     []string{"a test of " + foo + " imports " + icecream},
		},
		"a test may import more": {
			packages: []goPackage{{ImportPath: app, TestImports: []string{app + "/testing"}, XTestImports: []string{root + "/hack/cluster"}}},
		},
		"what only tests may import": {
			packages: []goPackage{{ImportPath: app, Imports: []string{app + "/testing"}}},
			want:     []string{app + " imports " + app + "/testing"},
		},
		"the library imports our API": {
			packages: []goPackage{{ImportPath: library + "/server", Imports: []string{api + "/workload/v1alpha1"}}},
			want:     []string{library + "/server imports " + api + "/workload/v1alpha1"},
		},
		"the API imports the library": {
			packages: []goPackage{{ImportPath: api + "/workload/v1alpha1", Imports: []string{library + "/server"}}},
			want:     []string{"of our packages it may import none"},
		},
		"packages of the library import one another": {
			packages: []goPackage{{ImportPath: library + "/supervisor", Imports: []string{library + "/leadership", library + "/informers"}}},
			want:     []string{library + "/supervisor imports " + library + "/informers"},
		},
		"a package that no rule knows": {
			packages: []goPackage{{ImportPath: root + "/pkg/util"}},
			want:     []string{root + "/pkg/util belongs to no rule"},
		},
		"a ban reaches through dependencies": {
			packages: []goPackage{
				{ImportPath: root + "/cmd/sample-controller-manager", Imports: []string{"example.com/a", "example.com/b"}},
				{ImportPath: "example.com/a", DepOnly: true},
				{ImportPath: "example.com/b", Imports: []string{"sigs.k8s.io/controller-runtime/pkg/log"}, DepOnly: true},
				{ImportPath: "sigs.k8s.io/controller-runtime/pkg/log", DepOnly: true},
			},
			want: []string{"must not depend on sigs.k8s.io/controller-runtime", "-> example.com/b\n\t-> sigs.k8s.io/controller-runtime/pkg/log"},
		},
		"a package of another module that is not ours": {
			packages: []goPackage{{ImportPath: "example.com/a", Imports: []string{foo}, DepOnly: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			packages := map[string]goPackage{}
			for _, p := range tc.packages {
				packages[p.ImportPath] = p
			}
			violations := check(packages)
			if len(tc.want) == 0 && len(violations) > 0 {
				t.Fatalf("unexpected violations: %q", violations)
			}
			if len(tc.want) > 0 && len(violations) != 1 {
				t.Fatalf("expected one violation, got %q", violations)
			}
			for _, want := range tc.want {
				if !strings.Contains(violations[0], want) {
					t.Errorf("expected the violation to contain %q, got %q", want, violations[0])
				}
			}
		})
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, path, matched string
		ok                     bool
	}{
		{"a/b", "a/b", "a/b", true},
		{"a/b", "a/b/c", "a/b", true},
		{"a/b", "a/bc", "", false},
		{"a/b", "a", "", false},
		{"a/*", "a/b/c", "a/b", true},
		{"a/*", "a", "", false},
		{"a/*/c", "a/b/c/d", "a/b/c", true},
	} {
		if matched, ok := match(tc.pattern, tc.path); matched != tc.matched || ok != tc.ok {
			t.Errorf("match(%q, %q) = %q, %v; expected %q, %v", tc.pattern, tc.path, matched, ok, tc.matched, tc.ok)
		}
	}
}
