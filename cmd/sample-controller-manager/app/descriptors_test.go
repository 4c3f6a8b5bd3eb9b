// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"slices"
	"strings"
	"testing"

	"samplecontroller.io/controller-manager/controller"
)

// controller.NewRegistry panics on an invalid descriptor.
func TestEveryControllerIsRegistered(t *testing.T) {
	names := controller.NewRegistry(Program().Controllers...).Names()
	packages, err := os.ReadDir("../../../pkg/controller")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		isOf := func(name string) bool {
			return strings.ReplaceAll(strings.TrimSuffix(name, "-controller"), "-", "") == p.Name()
		}
		if !slices.ContainsFunc(names, isOf) {
			t.Errorf("pkg/controller/%s has no descriptor; registered are %v", p.Name(), names)
		}
	}
	if len(names) != len(packages) {
		t.Errorf("%d controllers are registered and %d packages exist", len(names), len(packages))
	}
}

func TestRulesHaveNoWildcards(t *testing.T) {
	for _, d := range Program().Controllers {
		for _, rule := range d.Rules {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
				t.Errorf("%s: rule %v has a wildcard", d.Name, rule)
			}
			if slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s may read secrets", d.Name)
			}
			for _, verb := range []string{"escalate", "bind", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s may %s", d.Name, verb)
				}
			}
		}
	}
}
