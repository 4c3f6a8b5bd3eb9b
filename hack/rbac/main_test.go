// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
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
