// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestConnectionsLeaveFileDescriptorsForWork opens more connections to the daemon than it
// may have open files, and makes it reconnect to the API server.
func TestConnectionsLeaveFileDescriptorsForWork(t *testing.T) {
	const files, connections = 200, 300
	ns := newNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, shared.Cluster(), nil)
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	program := slices.Concat(
		[]string{os.Args[0], anotherDaemon, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)},
		daemonFlags(proxy.Kubeconfig(t, namespace, namespace)))
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}, program...)...)
	stop := startProcess(t, processLog(t), cmd)
	holder := waitHolder(t, "")
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")

	most := 0
	open := func() int {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(open))
		return len(open)
	}
	for range connections {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		open()
	}
	clustertest.WaitUntil(t, "connections use all file descriptors that they may", func(context.Context) error {
		if n := open(); n < files/4 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	t.Logf("at most %d of %d files were open", most, files)
	if most > files/2 { // a quarter for callers, and the rest for the work, which uses few
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
