// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// namespace is that of the daemon, its ServiceAccount and its Lease.
const namespace = "sample-controller-manager"

// An API server shared by all tests of the package, without
// kube-controller-manager: a test plays its part where it needs one.
var (
	testCluster *cluster.Cluster
	kube        kubernetes.Interface
	sample      sampleclientset.Interface
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == anotherDaemon {
		runAnotherDaemon(os.Args[2:]) // as a process of its own: in this one there can be one at a time
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	// What runs in parallel waits most of the time, however few processors there are.
	if err := flag.Set("test.parallel", "20"); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // the first time, the binaries are built
	defer cancel()
	testCluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := testCluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := testCluster.Install(ctx); err != nil {
		return 0, err
	}
	if kube, err = kubernetes.NewForConfig(testCluster.Config()); err != nil {
		return 0, err
	}
	if sample, err = sampleclientset.NewForConfig(testCluster.Config()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// startDaemon starts the daemon as its ServiceAccount and waits until it is ready.
func startDaemon(t *testing.T, flags ...string) *apptesting.Server {
	t.Helper()
	kubeconfig, err := testCluster.ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	server := apptesting.Start(t, append(daemonFlags(kubeconfig), flags...)...)
	eventually(t, "the daemon is ready", func(ctx context.Context) error {
		code, body, err := server.Get(ctx, "/readyz?verbose", "")
		if err == nil && code != 200 {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return server
}

// daemonFlags are those of a daemon that campaigns.
func daemonFlags(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect-resource-namespace=" + namespace,
		"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=200ms",
	}
}

// newNamespace makes a namespace that only this test uses.
func newNamespace(t *testing.T) string {
	t.Helper()
	return clustertest.NewNamespace(t, kube)
}

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	clustertest.WaitUntil(t, what, check)
}
