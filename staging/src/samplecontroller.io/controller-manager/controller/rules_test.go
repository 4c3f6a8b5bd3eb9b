// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"samplecontroller.io/controller-manager/internal/writes"
)

func TestWritesAllowedByRules(t *testing.T) {
	got := writesAllowedBy([]rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"foos/status", "foos/finalizers"}, Verbs: []string{"update"}},
	})
	want := []writes.Write{
		{Verb: "create", Resource: "deployments.apps"}, {Verb: "patch", Resource: "deployments.apps"}, {Verb: "delete", Resource: "deployments.apps"},
		{Verb: "update", Resource: "foos/status.example.com"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
}

func TestReads(t *testing.T) {
	for permission, want := range map[[2]string]bool{
		{"pods", "get"}: true, {"pods", "list"}: true, {"pods/log", "get"}: true, {"foos", "watch"}: true,
		{"pods", "create"}: false, {"pods/exec", "get"}: false, {"pods/exec", "create"}: false,
		{"pods/attach", "get"}: false, {"pods/portforward", "get"}: false,
	} {
		if got := Reads(permission[0], permission[1]); got != want {
			t.Errorf("%v reads: %t, want %t", permission, got, want)
		}
	}
}
