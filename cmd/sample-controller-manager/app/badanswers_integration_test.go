// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// TestWorkResumesAfterBadAnswers answers all requests for a minute with a web page, as a load
// balancer without a backend may do. client-go's informers would then wait for half a minute.
func TestWorkResumesAfterBadAnswers(t *testing.T) {
	clustertest.Long(t)
	var bad atomic.Bool
	proxy := clustertest.StartProxy(t, shared.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if bad.Load() {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html><body>Maintenance</body></html>")
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	ns := newNamespace(t)
	startDaemon(t, append([]string{"--kubeconfig=" + proxy.Kubeconfig(t, namespace, namespace)}, shortLease...)...)
	bad.Store(true)
	proxy.CloseClientConnections() // with the watches
	foos.Create(t, ns, "unseen", 1)
	time.Sleep(time.Minute)

	bad.Store(false)
	end := time.Now()
	foos.waitCondition(t, ns, "unseen", "Reconciling", "Progressing")
	if took := time.Since(end); took > 20*time.Second {
		t.Errorf("served %v after the end, want within seconds", took)
	}
}
