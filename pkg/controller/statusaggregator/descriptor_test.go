// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package statusaggregator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestKindsOfDisabledControllersAreNotRead(t *testing.T) {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.controller)
		wantServed(t, []string{kind.controller}, kind.controller)
	}
	wantServed(t, all, all...)
	wantServed(t, nil, all...) // it runs alone
}

// wantServed checks the controllers of the kinds that are served while others are enabled.
func wantServed(t *testing.T, enabled []string, want ...string) {
	t.Helper()
	var got []string
	for _, kind := range served(func(name string) bool { return slices.Contains(enabled, name) }) {
		got = append(got, kind.controller)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds that are served with %q (-want +got):\n%s", enabled, diff)
	}
}

func TestPermissions(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	want := []rbacv1.PolicyRule{
		rule("", "pods", "list", "watch"),
		rule("apps", "deployments", "list", "watch"),
		rule("apps", "replicasets", "list", "watch"),
	}
	for _, kind := range kinds {
		want = append(want,
			rule(kind.resource.Group, kind.resource.Resource, "list", "watch"),
			rule(kind.resource.Group, kind.resource.Resource+"/status", "patch"))
	}
	byName := cmpopts.SortSlices(func(a, b rbacv1.PolicyRule) bool { return a.Resources[0] < b.Resources[0] })
	inBubble(t, func(b *bubble) {
		if diff := cmp.Diff(want, b.rules, byName); diff != "" {
			b.Errorf("permissions (-want +got):\n%s", diff)
		}
	})
}
