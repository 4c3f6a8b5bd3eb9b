// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestCallersLeaveFilesForTheWork opens more connections to the daemon than it may open
// files, and makes it reconnect to the API server.
func TestCallersLeaveFilesForTheWork(t *testing.T) {
	const files, connections = 200, 300
	ns := newNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, shared.Cluster(), nil)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	program := slices.Concat(
		[]string{os.Args[0], anotherDaemon, "--bind-address=127.0.0.1", "--secure-port=" + strings.TrimPrefix(address, "127.0.0.1:")},
		daemonFlags(proxy.Kubeconfig(t, namespace, namespace)), patient)
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}, program...)...)
	stop := startProcess(t, processLog(t), cmd)
	holder := waitHolder(t, "")
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")

	most := 0
	for range connections {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(open))
	}
	t.Logf("at most %d of %d files were open", most, files)
	if most > files/2 { // a quarter for callers, and the rest for the work, which has a few
		t.Errorf("%d of %d files were open while callers connected, want at most half of them", most, files)
	}
	proxy.CloseClientConnections()
	foos.Create(t, ns, "after", 1)
	foos.waitCondition(t, ns, "after", "Reconciling", "Progressing")
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
