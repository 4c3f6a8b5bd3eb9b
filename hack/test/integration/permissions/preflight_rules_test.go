// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// scopedRule is a rule in a namespace; empty means all.
type scopedRule struct {
	namespace string
	rbacv1.PolicyRule
}

// isOptional returns whether preflight only warns if the rule is missing: then the pause annotation of namespaces
// is ignored.
func (r scopedRule) isOptional() bool { return r.Resources[0] == "namespaces" }

// String is what preflight prints if the rule is missing.
func (r scopedRule) String() string {
	what := strings.TrimSuffix(r.Resources[0]+"."+r.APIGroups[0], ".")
	if len(r.ResourceNames) > 0 {
		what += fmt.Sprintf(" %q", r.ResourceNames[0])
	}
	where := " in all namespaces"
	if r.namespace != "" {
		where = fmt.Sprintf(" in namespace %q", r.namespace)
	} else if strings.HasSuffix(what, "reviews."+r.APIGroups[0]) || r.isOptional() {
		where = ""
	}
	return "may not " + r.Verbs[0] + " " + what + where
}

// daemonRules returns what the manifests grant the daemon, one verb on one resource each. If
// served is not empty, it is the only namespace that the daemon serves.
func daemonRules(t *testing.T, served string) []scopedRule {
	t.Helper()
	var all []scopedRule
	add := func(namespace string, rules []rbacv1.PolicyRule, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if served != "" && resource == "namespaces" {
							continue // a Role cannot permit it
						}
						all = append(all, scopedRule{namespace, rbacv1.PolicyRule{
							APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb},
							ResourceNames: rule.ResourceNames,
						}})
					}
				}
			}
		}
	}
	clusterRole := func(namespace, name string) {
		t.Helper()
		role, err := framework.Kube().RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		add(namespace, role.Rules, err)
	}
	role := func(namespace, name string) {
		t.Helper()
		role, err := framework.Kube().RbacV1().Roles(namespace).Get(t.Context(), name, metav1.GetOptions{})
		add(namespace, role.Rules, err)
	}
	clusterRole(served, "sample-controller-manager-controllers")
	clusterRole(served, "sample-controller-manager-events")
	if served != "" {
		clusterRole(framework.DaemonName, "sample-controller-manager-events") // of the Lease
	}
	role(framework.DaemonName, "sample-controller-manager-leader-election")
	clusterRole("", "system:auth-delegator")
	role(metav1.NamespaceSystem, "extension-apiserver-authentication-reader")
	return all
}

// grantedAccount creates a ServiceAccount with the rules and returns its kubeconfig.
func grantedAccount(t *testing.T, ns, name string, rules []scopedRule) (kubeconfig string) {
	t.Helper()
	ctx, rbac := t.Context(), framework.Kube().RbacV1()
	if _, err := framework.Kube().CoreV1().ServiceAccounts(ns).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for _, rule := range rules {
		byNamespace[rule.namespace] = append(byNamespace[rule.namespace], rule.PolicyRule)
	}
	object := metav1.ObjectMeta{Name: ns + "-" + name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}}
	for namespace, rules := range byNamespace {
		var err, bindErr error
		reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: object.Name}
		if namespace == "" {
			reference.Kind = "ClusterRole"
			_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: object, Rules: rules},
				metav1.CreateOptions{})
			_, bindErr = rbac.ClusterRoleBindings().Create(ctx,
				&rbacv1.ClusterRoleBinding{ObjectMeta: object, RoleRef: reference, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			_, err = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: object, Rules: rules}, metav1.CreateOptions{})
			_, bindErr = rbac.RoleBindings(namespace).Create(ctx,
				&rbacv1.RoleBinding{ObjectMeta: object, RoleRef: reference, Subjects: subjects}, metav1.CreateOptions{})
		}
		if err != nil || bindErr != nil {
			t.Fatal(err, bindErr)
		}
	}
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(ctx, ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
