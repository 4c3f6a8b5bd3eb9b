// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestConnectionsLeaveFileDescriptorsForWork opens more connections to the daemon than it
// may have open files, and makes it reconnect to the API server.
func TestConnectionsLeaveFileDescriptorsForWork(t *testing.T) {
	const files, connections = 200, 300
	ns := framework.NewNamespace(t)
	proxy := clustertest.StartHoldingProxy(t, framework.Cluster(), nil)
	port := framework.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), framework.Binary()}
	flags := framework.ReplicaFlags(proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName), port)
	program := framework.StartProgram(t, "sh", append(limited, flags...)...)
	holder := framework.WaitLeader(t, "")
	framework.Foos.Create(t, ns, "before", 1)
	framework.Foos.WaitCondition(t, ns, "before", "Reconciling", "Progressing")

	most := 0
	open := func() int {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", program.Cmd.Process.Pid))
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
	framework.Foos.Create(t, ns, "after", 1)
	framework.Foos.WaitCondition(t, ns, "after", "Reconciling", "Progressing")
	if got := framework.WaitLeader(t, ""); got != holder {
		t.Errorf("the Lease is held by %q, want %q", got, holder)
	}
	program.Stop()
}
