// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestReplicaStartingDuringOutageWaits starts the daemon while nothing listens at the API
// server's address.
func TestReplicaStartingDuringOutageWaits(t *testing.T) {
	ns := framework.NewNamespace(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	kubeconfig := clustertest.Kubeconfig(t, framework.Cluster(), framework.DaemonName, framework.DaemonName,
		func(c *clientcmdapi.Cluster) { c.Server = "https://" + address })

	start := func() *framework.Replica {
		server := framework.StartUnready(t, "--kubeconfig="+kubeconfig)
		clustertest.WaitUntil(t, "the daemon logs the outage", func(context.Context) error {
			if len(server.LogAbout("API server cannot be reached")) == 0 {
				return errors.New("not logged")
			}
			return nil
		})
		for range 3 { // tries of each informer
			server.GetPage("/livez", "", http.StatusOK)
			server.GetPage("/readyz/informer-sync", "", http.StatusInternalServerError)
			time.Sleep(time.Second)
		}
		return server
	}
	server := start()
	server.Stop()
	server = start()
	framework.Foos.Create(t, ns, "wanted", 1)
	clustertest.StartLinkAt(t, framework.Cluster(), address)
	back := time.Now()
	framework.Foos.WaitCondition(t, ns, "wanted", "Reconciling", "Progressing")
	t.Logf("served %v after the API server's return", time.Since(back).Round(time.Millisecond))
	server.GetPage("/readyz/informer-sync", "", http.StatusOK)
	if lines := server.LogAbout("Reading failed"); len(lines) > 0 {
		t.Errorf("also logged: %q", lines)
	}
	server.Stop() // while it can release its Lease
}

// TestMissingClientCAPermissionStopsNothingElse revokes the daemon's permission to read the
// ConfigMap that only client certificates need.
func TestMissingClientCAPermissionStopsNothingElse(t *testing.T) {
	const name = framework.DaemonName + "-authentication-reader"
	bindings := framework.Kube().RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	grant := sync.OnceFunc(func() {
		again := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: binding.Labels},
			RoleRef: binding.RoleRef, Subjects: binding.Subjects}
		if _, err := bindings.Create(context.WithoutCancel(t.Context()), again, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(grant)
	read := clustertest.Right{Verb: "get", Resource: "configmaps", Name: "extension-apiserver-authentication"}
	read.WaitAllowed(t, framework.Kube(), framework.DaemonUser, metav1.NamespaceSystem, false)

	server := framework.StartDaemon(t)
	server.GetPage("/metrics", server.Admin(), http.StatusOK)
	wantByCertificate(t, server, http.StatusUnauthorized)
	grant()
	wantByCertificate(t, server, http.StatusOK)
}

// wantByCertificate requests /metrics with the client certificate of the cluster's admin
// and waits for a status code.
func wantByCertificate(t *testing.T, server *framework.Replica, want int) {
	t.Helper()
	config := framework.Cluster().Config()
	certificate := framework.Pair{Certificate: config.CertData, Key: config.KeyData}.Load(t)
	clustertest.WaitUntil(t, fmt.Sprintf("/metrics answers %d by a client certificate", want), func(ctx context.Context) error {
		code, body, err := server.GetWith(ctx, certificate, "/metrics")
		if err == nil && code != want {
			err = fmt.Errorf("%d %.200s", code, body)
		}
		return err
	})
}
