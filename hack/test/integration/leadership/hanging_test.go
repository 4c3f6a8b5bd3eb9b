// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestDaemonLeavesAPIServerThatHangs lets the requests of all connections hang, as of an API
// server that has lost its etcd, while new connections reach an API server that works, as behind
// a load balancer.
func TestDaemonLeavesAPIServerThatHangs(t *testing.T) {
	clustertest.Long(t)
	e := inParallel(t)
	var silent atomic.Bool
	var old sync.Map // addresses of the connections that hang
	var unanswered atomic.Int64
	s := clustertest.StartHTTP2Proxy(t, framework.Cluster(), func(next http.Handler) http.Handler {
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
	framework.StartDaemon(t, e.through(s, framework.ShortLease...)...)
	e.serve("before")
	silent.Store(true)
	e.serve("after")
	if unanswered.Load() < 2 {
		t.Errorf("%d requests were not answered, want at least two", unanswered.Load())
	}
}
