// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// Group is a group of permissions, which has a row in the table.
type Group struct {
	Name        string
	Permissions []Permission
	// Controller is the controller whose own ServiceAccount needs the permissions. Empty if the
	// program itself needs them.
	Controller string
}

// Permission is one verb on a resource.
type Permission struct {
	// Verb, Group and Resource are as in RBAC rules. Resource includes the subresource.
	Verb, Group, Resource string
	// Namespace is empty for all namespaces, and for a resource without namespaces.
	Namespace string
	// ClusterScoped is whether the resource is known to have no namespaces.
	ClusterScoped bool
	// Name is the name of the only object, or empty for all.
	Name string
	// For lists what needs the permission, or is the reason for it. Optional.
	For string
}

// String returns what is permitted, such as: create deployments.apps in namespace "default".
func (p Permission) String() string {
	text := p.Verb + " " + strings.TrimSuffix(p.Resource+"."+p.Group, ".")
	if p.Name != "" {
		text += fmt.Sprintf(" %q", p.Name)
	}
	switch {
	case p.ClusterScoped:
		return text
	case p.Namespace == "":
		return text + " in all namespaces"
	default:
		return text + fmt.Sprintf(" in namespace %q", p.Namespace)
	}
}

// Expand returns the permissions of a rule in a namespace; empty means all.
func Expand(rule rbacv1.PolicyRule, namespace string) []Permission {
	var all []Permission
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, Permission{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
				}
			}
		}
	}
	return all
}

// review returns why the permission is missing for the user of a client, empty if it is
// granted.
func review(ctx context.Context, client kubernetes.Interface, p Permission) string {
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	spec := authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: p.Verb, Group: p.Group, Version: "*", Resource: resource, Subresource: subresource, Namespace: p.Namespace,
		Name: p.Name,
	}}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Sprintf("whether it may %s is unknown: %v", p, err)
	case review.Status.Allowed:
		return ""
	case review.Status.EvaluationError != "":
		return fmt.Sprintf("may not %s (%s)", p, review.Status.EvaluationError)
	default:
		return fmt.Sprintf("may not %s", p)
	}
}

// reviewPermissions reviews each permission once.
func (c *checker) reviewPermissions(ctx context.Context) {
	for _, name := range c.Undeclared {
		c.report.add("permissions: "+name, WARN, "%s declares no Rules: its permissions cannot be checked", name)
	}
	for _, group := range c.Permissions {
		client, err := c.clientOf(group)
		if err != nil {
			c.report.add("permissions: "+group.Name, FAIL, "%v", err)
			continue
		}
		missing := make([]string, len(group.Permissions))
		workqueue.ParallelizeUntil(ctx, parallelRequests, len(missing),
			func(i int) { missing[i] = review(ctx, client, group.Permissions[i]) })
		c.reportPermissions(group, missing)
	}
}

// clientOf returns the client of the user that needs the permissions of a group.
func (c *checker) clientOf(group Group) (kubernetes.Interface, error) {
	if group.Controller == "" {
		return c.client, nil
	}
	if err := c.Accounts.Check(group.Controller); err != nil {
		return nil, err
	}
	config := restclient.CopyConfig(c.config)
	config.Wrap(c.Accounts.Wrap(group.Controller))
	return kubernetes.NewForConfig(config)
}

// reportPermissions adds a row for each missing permission of a group, or one for all if none
// is missing.
func (c *checker) reportPermissions(group Group, missing []string) {
	check, complete := "permissions: "+group.Name, true
	for i, reason := range missing {
		if reason == "" {
			continue
		}
		complete = false
		c.missing = append(c.missing, group.Permissions[i])
		if needed := group.Permissions[i].For; needed != "" {
			reason += ", needed by " + needed
		}
		c.report.add(check, FAIL, "%s", reason)
	}
	if complete {
		c.report.add(check, OK, "all %d granted", len(missing))
	}
}
