// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestRightsOfOperator uses the Role for operators, which grants no Foos.
func TestRightsOfOperator(t *testing.T) {
	framework.FreeLease(t)
	daemon := framework.StartDaemon(t)
	framework.WaitLeader(t, "")
	ns := framework.NewNamespace(t)
	framework.CreateAccount(t, ns, "operator")
	framework.BindRole(t, ns, "operator", framework.DaemonName, framework.StatusReader)
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(t.Context(), ns, "operator")
	if err != nil {
		t.Fatal(err)
	}
	_, url := start(t, "--server="+daemon.URL, "--insecure-skip-tls-verify", "--kubeconfig="+kubeconfig)
	page := &htmlReader{t: t}
	must(t, page.open(url))
	wait(t, page, "Permissions: you may not read foos: .*403: may not list foos in all namespaces", ` leads\. It began`, `foo-controller\s+Running`,
		"from the Events of the Lease",
		"Foos. Not readable: .*403: may not list foos in all namespaces")
}
