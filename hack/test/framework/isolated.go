// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/leaders"
)

// Token returns a new token of the replica's ServiceAccount, bound to an object unless that is
// nil.
func (l *Isolated) Token(t *testing.T, bound *authenticationv1.BoundObjectReference) string {
	t.Helper()
	return NewToken(t, l.Namespace, IsolatedAccount, bound)
}

// TokenKubeconfig returns the path of a kubeconfig and the path of its token file.
func (l *Isolated) TokenKubeconfig(t *testing.T, token string) (kubeconfig, file string) {
	t.Helper()
	return Kubeconfig(t, func(dir string, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		file = filepath.Join(dir, "token")
		ReplaceFile(t, file, []byte(token))
		user.TokenFile = file
	}), file
}

// AsKubelet replaces the files of a ServiceAccount like the kubelet: the files are links into
// a directory that is itself a link, which is replaced atomically.
func AsKubelet(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // missing the first time
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Base(data), filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// Isolated is a replica whose ServiceAccount and Lease are in a namespace of its test. Tests
// can run several at the same time, with different controllers.
type Isolated struct {
	*Replica
	Namespace string
	began     time.Time
}

// IsolatedAccount is the name of its ServiceAccount.
const IsolatedAccount = "isolated"

// NewIsolated creates the ServiceAccount with all its rights. It does not start a process.
func NewIsolated(t *testing.T) *Isolated {
	t.Helper()
	ns := NewNamespace(t)
	l := &Isolated{Namespace: ns, began: time.Now()}
	CreateAccount(t, ns, IsolatedAccount, DaemonName+"-controllers", DaemonName+"-events", "system:auth-delegator")
	leases := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: IsolatedAccount},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "watch"}}},
	}
	if _, err := Kube().RbacV1().Roles(ns).Create(t.Context(), leases, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	BindRole(t, ns, IsolatedAccount, ns, IsolatedAccount)
	BindRole(t, ns, IsolatedAccount, metav1.NamespaceSystem, "extension-apiserver-authentication-reader")
	// The API server has seen the first and the last of these rights.
	for namespace, right := range map[string]clustertest.Right{
		metav1.NamespaceDefault: Foos.May("watch", ""),
		ns:                      {Verb: "create", Group: "coordination.k8s.io", Resource: "leases"},
		metav1.NamespaceSystem:  {Verb: "list", Resource: "configmaps", Name: "extension-apiserver-authentication"},
	} {
		right.WaitAllowed(t, Kube(), l.User(), namespace, true)
	}
	return l
}

// User returns the user name of the ServiceAccount.
func (l *Isolated) User() string {
	return "system:serviceaccount:" + l.Namespace + ":" + IsolatedAccount
}

// Kubeconfig returns the path of a kubeconfig for the user, in a new directory with the other
// files that it names.
func Kubeconfig(t *testing.T, change func(dir string, cluster *clientcmdapi.Cluster,
	user *clientcmdapi.AuthInfo)) (path string) {
	t.Helper()
	dir := t.TempDir()
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: Cluster().Config().Host,
		CertificateAuthorityData: Cluster().Config().CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{}
	config.Contexts["isolated"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "isolated"
	change(dir, config.Clusters["cluster"], config.AuthInfos["user"])
	path = filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Start starts the process and returns when it leads.
func (l *Isolated) Start(t *testing.T, kubeconfig string, flags ...string) *Isolated {
	t.Helper()
	l.Replica = StartReplicaWith(t, kubeconfig, append(flags, "--leader-elect-resource-namespace="+l.Namespace)...)
	l.Ready()
	l.WaitRenewal(time.Now())
	return l
}

// WaitRenewal waits until the replica has renewed its Lease after the given time, and returns
// the time of the renewal.
func (l *Isolated) WaitRenewal(after time.Time) (renewed time.Time) {
	l.T.Helper()
	return l.WaitRenewalWithin(5*time.Minute, after)
}

// WaitRenewalWithin is [Isolated.WaitRenewal] with another timeout.
func (l *Isolated) WaitRenewalWithin(timeout time.Duration, after time.Time) (renewed time.Time) {
	l.T.Helper()
	clustertest.WaitWithin(l.T, timeout, "the replica renews its Lease", func(ctx context.Context) error {
		l.mustRun()
		lease, err := Kube().CoordinationV1().Leases(l.Namespace).Get(ctx, DaemonName, metav1.GetOptions{})
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

// Requests returns the replica's answered requests since it was created, in the order of the
// answers. Requests rejected with 401 have no user, and are not included.
func (l *Isolated) Requests(t *testing.T) []auditv1.Event {
	t.Helper()
	return Audit(t, leaders.ServiceAccount(l.Namespace, IsolatedAccount))
}

// Unauthenticated returns how many requests for its Lease were rejected with 401.
func (l *Isolated) Unauthenticated(t *testing.T) int {
	t.Helper()
	return len(Audit(t, cluster.InNamespace(l.Namespace), func(event auditv1.Event) bool {
		return event.ResponseStatus != nil && event.ResponseStatus.Code == 401
	}))
}

// Credentials returns the credentials of the answered requests, in the order of their first
// use.
func (l *Isolated) Credentials(t *testing.T) []string {
	t.Helper()
	var ids []string
	seen := map[string]bool{}
	for _, event := range l.Requests(t) {
		if id := leaders.Credential(event); id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// ReplaceFile replaces a file atomically: readers never see a part of its content.
func ReplaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".partial", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".partial", path); err != nil {
		t.Fatal(err)
	}
}
