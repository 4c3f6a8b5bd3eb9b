// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestDaemonLeavesAPIServerThatHangs lets the requests of all connections hang, as of an API
// server that has lost its etcd, while new connections reach an API server that works, as behind
// a load balancer.
func TestDaemonLeavesAPIServerThatHangs(t *testing.T) {
	clustertest.Long(t)
	var silent atomic.Bool
	var old sync.Map // addresses of the connections that hang
	var unanswered atomic.Int64
	s := clustertest.StartHTTP2Proxy(t, shared.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !silent.Load() {
				old.Store(r.RemoteAddr, true)
			}
			if _, hangs := old.Load(r.RemoteAddr); !silent.Load() || !hangs {
				next.ServeHTTP(w, r)
				return
			}
			unanswered.Add(1)
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		})
	})
	ns := newNamespace(t)
	startDaemon(t, append([]string{"--kubeconfig=" + s.Kubeconfig(t, namespace, namespace)}, shortLease...)...)
	foos.Create(t, ns, "before", 1)
	foos.waitCondition(t, ns, "before", "Reconciling", "Progressing")

	silent.Store(true)
	foos.Create(t, ns, "after", 1)
	foos.waitCondition(t, ns, "after", "Reconciling", "Progressing")
	if unanswered.Load() < 2 {
		t.Errorf("%d requests were not answered, want at least two", unanswered.Load())
	}
}
