// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/leaders"
)

// loner is a replica whose ServiceAccount and Lease are in a namespace that only its test
// uses. Several can be tested at a time, each of which hosts other controllers.
type loner struct {
	*replica
	ns    string
	began time.Time
}

// account is the name of its ServiceAccount.
const account = "loner"

// newLoner makes the ServiceAccount with all its rights. It starts no process.
func newLoner(t *testing.T) *loner {
	t.Helper()
	ns := newNamespace(t)
	l := &loner{ns: ns, began: time.Now()}
	l.createAccount(t)
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}
	for _, role := range []string{daemonName + "-controllers", daemonName + "-events", "system:auth-delegator"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject},
		}
		if _, err := kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{})
		})
	}
	leases := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "watch"}}},
	}
	if _, err := kube.RbacV1().Roles(ns).Create(t.Context(), leases, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for in, role := range map[string]string{ns: account, metav1.NamespaceSystem: "extension-apiserver-authentication-reader"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
			Subjects:   []rbacv1.Subject{subject},
		}
		if _, err := kube.RbacV1().RoleBindings(in).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = kube.RbacV1().RoleBindings(in).Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{})
		})
	}
	l.waitAllowed(t)
	return l
}

// createAccount makes the ServiceAccount, for the first time or again.
func (l *loner) createAccount(t *testing.T) {
	t.Helper()
	_, err := kube.CoreV1().ServiceAccounts(l.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// user is the name by which the API server knows the ServiceAccount.
func (l *loner) user() string { return "system:serviceaccount:" + l.ns + ":" + account }

// waitAllowed waits until the API server knows of the rights that were granted first and
// last.
func (l *loner) waitAllowed(t *testing.T) {
	t.Helper()
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "watch", Group: foos.Group, Resource: foos.resource},
		{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: l.ns},
		{Verb: "list", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"},
	} {
		waitUntil(t, "the rights are known", func(ctx context.Context) error {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: l.user(), Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &right,
			}}
			review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !review.Status.Allowed {
				err = fmt.Errorf("not allowed: %s %s", right.Verb, right.Resource)
			}
			return err
		})
	}
}

// kubeconfig returns the path of a kubeconfig for the user, in a directory of its own
// together with the other files that it names.
func (l *loner) kubeconfig(t *testing.T, change func(dir string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo)) (path string) {
	t.Helper()
	dir := t.TempDir()
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: testCluster.Config().Host, CertificateAuthorityData: testCluster.Config().CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{}
	config.Contexts["loner"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "loner"
	change(dir, config.Clusters["cluster"], config.AuthInfos["user"])
	path = filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts the process and returns when it leads.
func (l *loner) start(t *testing.T, kubeconfig string, flags ...string) *loner {
	t.Helper()
	l.replica = startReplicaWith(t, kubeconfig, append(flags, "--leader-elect-resource-namespace="+l.ns)...)
	l.ready()
	l.waitRenewal(time.Now())
	return l
}

// waitRenewal waits until the replica has renewed its Lease after a moment, and returns
// when it did.
func (l *loner) waitRenewal(after time.Time) (renewed time.Time) {
	l.t.Helper()
	waitUntil(l.t, "the replica renews its Lease", func(ctx context.Context) error {
		select {
		case <-l.done:
			l.t.Fatalf("the replica ended: %v", l.cmd.ProcessState)
		default:
		}
		lease, err := kube.CoordinationV1().Leases(l.ns).Get(ctx, daemonName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(after) {
			return errors.New("not yet")
		}
		renewed = lease.Spec.RenewTime.Time
		return nil
	})
	return renewed
}

// requests returns what the replica was answered since it was made, in the order in which
// it was. What was refused with 401 is nobody's, and not among it.
func (l *loner) requests(t *testing.T) []auditv1.Event {
	t.Helper()
	events, err := testCluster.AuditEvents(leaders.ServiceAccount(l.ns, account))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// unauthenticated returns how many requests for its Lease were refused with 401.
func (l *loner) unauthenticated(t *testing.T) int {
	t.Helper()
	events, err := testCluster.AuditEvents(cluster.InNamespace(l.ns), func(event auditv1.Event) bool {
		return event.ResponseStatus != nil && event.ResponseStatus.Code == 401
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

// credentials returns the credentials that requests were answered for, in the order of
// their first use.
func (l *loner) credentials(t *testing.T) []string {
	t.Helper()
	var ids []string
	seen := map[string]bool{}
	for _, event := range l.requests(t) {
		if id := leaders.Credential(event); id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// longestGap returns the longest time between two renewals of the Lease, up to now.
func (l *loner) longestGap(t *testing.T) (longest time.Duration) {
	t.Helper()
	var last time.Time
	for _, event := range l.requests(t) {
		if cluster.Call(event) != "update leases" || event.ResponseStatus.Code >= 300 {
			continue
		}
		at := event.RequestReceivedTimestamp.Time
		if !last.IsZero() {
			longest = max(longest, at.Sub(last))
		}
		last = at
	}
	return longest
}

// replaceFile replaces a file, which never holds a part of its content.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".partial", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
}
