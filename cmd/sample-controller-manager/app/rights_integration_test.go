// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is a verb on a resource of an API group.
type right struct{ verb, group, resource string }

// toRead are the rights to read a kind.
func (k kind) toRead() []right {
	return []right{{"list", k.group, k.resource}, {"watch", k.group, k.resource}}
}

// revoke takes rights from the daemon. It returns how to give them back, which happens at
// the end of the test at the latest; that returns when it was.
func revoke(t *testing.T, rights ...right) (grant func() time.Time) {
	t.Helper()
	roles := kube.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "sample-controller-manager-controllers", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, rules []rbacv1.PolicyRule) {
		t.Helper()
		role, err := roles.Get(ctx, role.Name, metav1.GetOptions{})
		if err == nil {
			role.Rules = rules
			_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var fewer []rbacv1.PolicyRule
	for _, rule := range role.DeepCopy().Rules {
		rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool {
			return slices.ContainsFunc(rights, func(r right) bool {
				return r.verb == verb && slices.Contains(rule.APIGroups, r.group) && slices.Contains(rule.Resources, r.resource)
			})
		})
		if len(rule.Verbs) > 0 {
			fewer = append(fewer, rule)
		}
	}
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), role.Rules) })
	set(t.Context(), fewer)
	waitAllowed := func(want bool) {
		t.Helper()
		for _, r := range rights {
			r.waitUntilAllowed(t, want)
		}
	}
	waitAllowed(false)
	return func() time.Time {
		t.Helper()
		set(t.Context(), role.Rules)
		granted := time.Now()
		waitAllowed(true)
		return granted
	}
}

// waitUntilAllowed waits until the API server knows whether the daemon has the right.
func (r right) waitUntilAllowed(t *testing.T, want bool) {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.resource, "/")
	eventually(t, fmt.Sprintf("%v is %v", r, want), func(ctx context.Context) error {
		review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + namespace,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: r.verb, Group: r.group, Version: "*", Resource: resource, Subresource: subresource,
			},
		}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("it is %v: %s", review.Status.Allowed, review.Status.Reason)
		}
		return err
	})
}
