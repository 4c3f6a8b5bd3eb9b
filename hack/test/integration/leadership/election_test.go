// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// election is a namespace with a Lease of its own. Its replicas serve only this namespace, so that tests, which mostly
// wait, can run in parallel.
type election struct {
	t  *testing.T
	ns string
}

// inParallel waits for the tests that are not parallel, and returns a new election.
func inParallel(t *testing.T) election {
	t.Helper()
	t.Parallel()
	return election{t, framework.NewIsolated(t).Namespace}
}

// through returns the flags of a replica that reaches the API server through a proxy.
func (e election) through(proxy *clustertest.Proxy, more ...string) []string {
	e.t.Helper()
	return e.with(proxy.Kubeconfig(e.t, e.ns, framework.IsolatedAccount), more...)
}

// direct returns the flags of a replica that reaches the API server without a proxy.
func (e election) direct(more ...string) []string {
	e.t.Helper()
	kubeconfig, err := framework.Cluster().ServiceAccountKubeconfig(e.t.Context(), e.ns, framework.IsolatedAccount)
	if err != nil {
		e.t.Fatal(err)
	}
	return e.with(kubeconfig, more...)
}

func (e election) with(kubeconfig string, more ...string) []string {
	flags := []string{"--kubeconfig=" + kubeconfig, "--namespace=" + e.ns, "--leader-elect-resource-namespace=" + e.ns}
	return append(flags, more...)
}

// waitLeader waits until a holder other than the given one leads, and returns it.
func (e election) waitLeader(but string) (holder string) {
	e.t.Helper()
	return framework.WaitLeaderIn(e.t, e.ns, but)
}

// patchLease changes the Lease.
func (e election) patchLease(patch string) {
	e.t.Helper()
	if _, err := framework.Kube().CoordinationV1().Leases(e.ns).Patch(e.t.Context(), framework.DaemonName,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// serve makes the leader serve a new Foo.
func (e election) serve(name string) {
	e.t.Helper()
	framework.Foos.Create(e.t, e.ns, name, 1)
	framework.Foos.WaitCondition(e.t, e.ns, name, "Reconciling", "Progressing")
}
