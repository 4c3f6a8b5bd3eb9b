// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// CreateAccount creates a ServiceAccount and binds it to ClusterRoles until the end of the
// test.
func CreateAccount(t *testing.T, ns, name string, clusterRoles ...string) {
	t.Helper()
	if _, err := Kube().CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range clusterRoles {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
		}
		if _, err := Kube().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = Kube().RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), binding.Name,
				metav1.DeleteOptions{})
		})
	}
}

// BindRole binds a ServiceAccount to a Role, which may be in another namespace, until the end
// of the test.
func BindRole(t *testing.T, ns, name, in, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
	}
	if _, err := Kube().RbacV1().RoleBindings(in).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = Kube().RbacV1().RoleBindings(in).Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{})
	})
}

// NewToken returns a token of a ServiceAccount, bound to an object unless that is nil.
func NewToken(t *testing.T, ns, name string, bound *authenticationv1.BoundObjectReference) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	request, err := Kube().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// TokenConfig returns the configuration of a client with a token and no other credentials.
func TokenConfig(token string) *rest.Config {
	config := rest.AnonymousClientConfig(Cluster().Config())
	config.BearerToken = token
	return config
}

// Grant grants a rule in a namespace, which ends with the test.
func Grant(t *testing.T, ns string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "grant-"}, Rules: []rbacv1.PolicyRule{rule}}
	role, err := Kube().RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	if _, err := Kube().RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// DebuggerToken returns a token that may get and put everything that the daemon serves.
func DebuggerToken(t *testing.T, ns string) string {
	t.Helper()
	CreateAccount(t, ns, "debugger", NewClusterRole(t, rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}))
	return NewToken(t, ns, "debugger", nil)
}

// TokenWith returns a token of a new ServiceAccount that the ClusterRoles are bound to.
func TokenWith(t *testing.T, ns string, roles ...string) string {
	t.Helper()
	CreateAccount(t, ns, "user", roles...)
	return NewToken(t, ns, "user", nil)
}

// NewClusterRole creates a ClusterRole with one rule and returns its name.
func NewClusterRole(t *testing.T, rule rbacv1.PolicyRule) string {
	t.Helper()
	role, err := Kube().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Rules:      []rbacv1.PolicyRule{rule},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return role.Name
}
