// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

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
	"k8s.io/client-go/kubernetes"
)

// Right is a verb on a resource or subresource of an API group, or only on the object of this name.
type Right struct{ Verb, Group, Resource, Name string }

// Revoke removes rights from a ClusterRole, and waits until the user no longer has them. It
// returns a function that restores them and returns when that was done. They are restored at
// the end of the test at the latest.
func Revoke(t *testing.T, kube kubernetes.Interface, clusterRole, user string,
	rights ...Right) (grant func() time.Time) {
	t.Helper()
	roles := kube.RbacV1().ClusterRoles()
	whole, err := roles.Get(t.Context(), clusterRole, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, rules []rbacv1.PolicyRule) {
		t.Helper()
		role, err := roles.Get(ctx, clusterRole, metav1.GetOptions{})
		if err == nil {
			role.Rules = rules
			_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	waitAllowed := func(want bool) {
		t.Helper()
		for _, r := range rights {
			r.WaitAllowed(t, kube, user, metav1.NamespaceDefault, want)
		}
	}
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), whole.Rules) })
	set(t.Context(), without(whole.Rules, rights))
	waitAllowed(false)
	return func() time.Time {
		t.Helper()
		set(t.Context(), whole.Rules)
		granted := time.Now()
		waitAllowed(true)
		return granted
	}
}

// without returns the rules without the rights.
func without(rules []rbacv1.PolicyRule, rights []Right) []rbacv1.PolicyRule {
	var fewer []rbacv1.PolicyRule
	for _, rule := range rules {
		rule = *rule.DeepCopy()
		rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool {
			return slices.ContainsFunc(rights, func(r Right) bool {
				return r.Verb == verb && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource)
			})
		})
		if len(rule.Verbs) > 0 {
			fewer = append(fewer, rule)
		}
	}
	return fewer
}

// WaitAllowed waits until the API server reports that the user has, or does not have, the right in a namespace.
func (r Right) WaitAllowed(t *testing.T, kube kubernetes.Interface, user, namespace string, want bool) {
	t.Helper()
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	WaitUntil(t, fmt.Sprintf("that %s may %s %s is %t", user, r.Verb, r.Resource, want), func(ctx context.Context) error {
		review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: r.Verb, Group: r.Group, Version: "*", Resource: resource, Subresource: subresource,
					Name: r.Name,
				},
			}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != want {
			err = fmt.Errorf("allowed=%t: %s", review.Status.Allowed, review.Status.Reason)
		}
		return err
	})
}
