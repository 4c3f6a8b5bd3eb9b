// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	apptesting "samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/testing"
	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// namespace is the namespace of the daemon, its ServiceAccount and its Lease.
const namespace = "sample-controller-manager"

// shared is an API server for all tests of the package, without kube-controller-manager:
// tests do its work where needed.
var shared = newCluster()

func newCluster() *clustertest.Shared {
	return clustertest.NewShared(cluster.Options{AuditLog: true, Progress: os.Stderr})
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 { // as a separate process: a process can have only one daemon
		switch os.Args[1] {
		case anotherDaemon:
			runAnotherDaemon(os.Args[2:])
		case libraryProgram:
			runLibraryProgram(os.Args[2:])
		}
	}
	// Parallel tests wait most of the time, so the number of processors does not matter.
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	shared.Main(m, noDeletions)
}

// noDeletions returns an error if the daemon tried to delete a Deployment in any test.
func noDeletions() error {
	deletions, err := shared.Cluster().AuditEvents(func(event auditv1.Event) bool {
		return strings.HasPrefix(event.UserAgent, "sample-controller-manager/") && strings.HasPrefix(event.Verb, "delete") &&
			event.ObjectRef.Resource == "deployments"
	})
	if err == nil && len(deletions) > 0 {
		ref := deletions[0].ObjectRef
		err = fmt.Errorf("the daemon tried to delete %d Deployments, first %s/%s", len(deletions), ref.Namespace, ref.Name)
	}
	return err
}

// startDaemon starts the daemon with its ServiceAccount and waits until it is ready.
func startDaemon(t *testing.T, flags ...string) *apptesting.Server {
	t.Helper()
	kubeconfig, err := shared.Cluster().ServiceAccountKubeconfig(t.Context(), namespace, namespace)
	if err != nil {
		t.Fatal(err)
	}
	server := apptesting.Start(t, append(daemonFlags(kubeconfig), flags...)...)
	clustertest.WaitUntil(t, "the daemon is ready", func(ctx context.Context) error {
		code, body, err := server.Get(ctx, "/readyz?verbose", "")
		if err == nil && code != 200 {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return server
}

// daemonFlags are the flags of a daemon that campaigns. Its timeouts are so long that it
// neither loses its Lease nor abandons a write on a busy machine.
func daemonFlags(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect-resource-namespace=" + namespace,
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=200ms",
		"--write-timeout=20s",
	}
}

// newNamespace creates a namespace for this test only.
func newNamespace(t *testing.T) string {
	t.Helper()
	return clustertest.NewNamespace(t, shared.Kube())
}
