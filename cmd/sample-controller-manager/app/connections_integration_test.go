// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestCallersLeaveFilesForTheWork opens more connections to the daemon than it may open
// files, and has it reconnect to the API server.
func TestCallersLeaveFilesForTheWork(t *testing.T) {
	const files, connections = 200, 300
	ns := newNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, shared.Cluster(), nil)
	port := freePort(t)
	daemon := slices.Concat(
		[]string{os.Args[0], anotherDaemon, fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1"},
		daemonFlags(proxy.Kubeconfig(t, namespace, namespace)), patient)
	stop := startProcess(t, processLog(t), exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}, daemon...)...))
	holder := waitHolder(t, "")
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")

	connect := func() {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("connecting to the daemon: %v", err)
		}
		t.Cleanup(func() { connection.Close() })
	}
	for range connections {
		connect()
	}
	proxy.CloseClientConnections()
	foos.Create(t, ns, "after", 1)
	foos.waitCondition(t, ns, "after", "Reconciling", "Progressing")
	connect()
	if got := waitHolder(t, ""); got != holder {
		t.Errorf("the Lease is held by %q, want %q", got, holder)
	}
	stop()
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
