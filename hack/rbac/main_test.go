// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/controller"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

func TestRules(t *testing.T) {
	needs := needs{}
	for _, need := range []struct {
		controller string
		rule       rbacv1.PolicyRule
	}{
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"watch", "list"}}},
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}}},
		{"b-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}}},
		{"a-controller", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"patch", "list", "watch"}}},
	} {
		if err := needs.add(need.controller, need.rule); err != nil {
			t.Fatal(err)
		}
	}
	want := `rules:
# b-controller
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["watch"]
# a-controller
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["patch"]
# a-controller, b-controller
- apiGroups: ["apps"]
  resources: ["deployments"]
  verbs: ["list", "watch"]
# a-controller
- apiGroups: ["apps"]
  resources: ["deployments/scale"]
  verbs: ["list", "patch", "watch"]
`
	for namespace, want := range map[string]string{
		"":       "kind: ClusterRole\nmetadata:\n  name: sample-controller-manager-controllers\n" + want,
		"team-a": "kind: Role\nmetadata:\n  name: sample-controller-manager-controllers\n  namespace: team-a\n" + want,
	} {
		var got strings.Builder
		if write(&got, namespace, needs.rules()); !strings.HasSuffix(got.String(), want) {
			t.Errorf("namespace %q: got\n%s\nwant at its end\n%s", namespace, got.String(), want)
		}
	}
}

// A kind that the program does not know is fenced and audited as Foos are.
func TestPoliciesHaveEveryRegisteredKind(t *testing.T) {
	registry := controller.NewRegistry(append(app.NewRegistry().Descriptors(), controller.Descriptor[*app.ControllerContext]{
		Name: "sundae-controller", Workers: 1,
		New: func(context.Context, *app.ControllerContext) (controller.Controller, error) { return nil, nil },
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes/status"}, Verbs: []string{"update", "patch"}},
			{APIGroups: []string{"sundaes.example.com"}, Resources: []string{"sundaes/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete"}},
		},
	})...)
	rule := func(group, version, resource, operations string) string {
		return fmt.Sprintf("    - apiGroups: [%q]\n      apiVersions: [%q]\n      resources: [%q]\n      operations: [%s]\n", group, version, resource, operations)
	}
	level := func(level, group, resource, verbs string) string {
		return fmt.Sprintf("- level: %s\n  verbs: [%s]\n  resources:\n  - group: %q\n    resources: [%q]\n", level, verbs, group, resource)
	}
	for policy, want := range map[string][]string{
		"fence": {
			rule("apps", "v1", "deployments", `"CREATE", "DELETE", "UPDATE"`), rule("apps", "v1", "deployments/scale", `"UPDATE"`), rule("batch", "v1", "jobs", `"CREATE", "DELETE"`),
			rule("controller.nicoleh.io", "v1alpha1", "icecreams/status", `"UPDATE"`), rule("samplecontroller.k8s.io", "v1alpha1", "foos/status", `"UPDATE"`),
			rule("sundaes.example.com", "*", "sundaes/status", `"UPDATE"`), "  matchConditions:\n",
		},
		"audit-policy": {
			"    - leases\n", level("Request", "apps", "deployments", `"patch"`), level("Request", "apps", "deployments/scale", `"update"`),
			level("RequestResponse", "controller.nicoleh.io", "icecreams/status", `"patch"`), level("RequestResponse", "samplecontroller.k8s.io", "foos/status", `"patch"`),
			level("RequestResponse", "sundaes.example.com", "sundaes/status", `"patch", "update"`), "- level: Metadata\n",
		},
	} {
		var got strings.Builder
		if err := run(&got, registry, "", policy); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(want, ""); !strings.Contains(got.String(), want) {
			t.Errorf("%s: got\n%s\nwant in it\n%s", policy, got.String(), want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	for name, rule := range map[string]rbacv1.PolicyRule{
		"any group":       {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		"any resource":    {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		"any verb":        {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		"any scale":       {APIGroups: []string{"apps"}, Resources: []string{"*/scale"}, Verbs: []string{"get"}},
		"no group":        {Resources: []string{"pods"}, Verbs: []string{"get"}},
		"no verb":         {APIGroups: []string{""}, Resources: []string{"pods"}},
		"a path":          {NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		"a single object": {APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"one"}, Verbs: []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := needs{}.add("a-controller", rule)
			if err == nil || !strings.Contains(err.Error(), "a-controller") {
				t.Errorf("got %v, want an error that names the controller", err)
			}
		})
	}
}
