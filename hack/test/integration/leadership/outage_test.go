// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"
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
			server.WaitReadyz(http.StatusInternalServerError)
			time.Sleep(time.Second)
		}
		return server
	}
	server := start()
	server.Stop()
	server = start()
	framework.Foos.Create(t, ns, "wanted", 1)
	forwardToAPIServer(t, address)
	back := time.Now()
	framework.Foos.WaitCondition(t, ns, "wanted", "Reconciling", "Progressing")
	t.Logf("served %v after the API server's return", time.Since(back).Round(time.Millisecond))
	server.WaitReadyz(http.StatusOK)
	if lines := server.LogAbout("Reading failed"); len(lines) > 0 {
		t.Errorf("also logged: %q", lines)
	}
	server.Stop() // while it can release its Lease
}

// forwardToAPIServer forwards another address to the API server until the test ends.
func forwardToAPIServer(t *testing.T, address string) {
	t.Helper()
	target, err := url.Parse(framework.Cluster().Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { listener.Close(); cancel(); running.Wait() })
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target.Host)
			if err != nil {
				client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { client.Close(); server.Close() })
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				running.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				})
			}
		}
	})
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
	clustertest.WaitUntil(t, "the permission is revoked", func(ctx context.Context) error {
		out, err := framework.Cluster().Kubectl(ctx, "auth", "can-i", "get", "configmaps/extension-apiserver-authentication", "-n", "kube-system",
			"--as=system:serviceaccount:"+framework.DaemonName+":"+framework.DaemonName)
		if err == nil {
			return errors.New(out)
		}
		return nil
	})

	server := framework.StartDaemon(t)
	admin := framework.TokenWith(t, framework.NewNamespace(t), framework.NewClusterRole(t, framework.Everything))
	server.GetPage("/metrics", admin, http.StatusOK)
	wantByCertificate(t, server, http.StatusUnauthorized)
	grant()
	wantByCertificate(t, server, http.StatusOK)
}

// wantByCertificate requests /metrics with the client certificate of the cluster's admin
// and waits for a status code.
func wantByCertificate(t *testing.T, server *framework.Replica, want int) {
	t.Helper()
	config, err := restclient.TLSConfigFor(framework.Cluster().Config())
	if err != nil {
		t.Fatal(err)
	}
	config.RootCAs, config.InsecureSkipVerify = nil, true // it is self-signed
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	clustertest.WaitUntil(t, fmt.Sprintf("/metrics answers %d by a client certificate", want), func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != want {
			return errors.New(response.Status)
		}
		return nil
	})
}
