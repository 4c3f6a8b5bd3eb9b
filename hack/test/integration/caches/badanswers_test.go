// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// TestWorkResumesAfterBadAnswers answers all requests with a web page, as a load balancer without a
// backend may do. The daemon keeps trying: client-go's informers would soon wait for half a minute
// between two tries, and not make this many before the test gives up.
func TestWorkResumesAfterBadAnswers(t *testing.T) {
	clustertest.Long(t)
	const many = 40
	var bad atomic.Bool
	var tries atomic.Int32
	path := "/apis/" + framework.Foos.APIVersion() + "/" + framework.Foos.Resource
	proxy := clustertest.StartProxy(t, framework.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if bad.Load() {
				if r.URL.Path == path {
					tries.Add(1)
				}
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html><body>Maintenance</body></html>")
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil)
	ns := framework.NewNamespace(t)
	framework.StartDaemon(t, append([]string{"--kubeconfig=" + proxy.Kubeconfig(t, framework.DaemonName, framework.DaemonName)},
		framework.ShortLease...)...)
	bad.Store(true)
	proxy.CloseClientConnections() // with the watches
	framework.Foos.Create(t, ns, "unseen", 1)
	began := time.Now()
	clustertest.WaitUntil(t, "the daemon keeps trying to read the Foos", func(context.Context) error {
		if n := tries.Load(); n < many {
			return fmt.Errorf("%d tries", n)
		}
		return nil
	})
	lasted := time.Since(began)

	bad.Store(false)
	end := time.Now()
	framework.Foos.WaitCondition(t, ns, "unseen", "Reconciling", "Progressing")
	t.Logf("%d tries in %v, served %v after the end", many,
		lasted.Round(time.Millisecond), time.Since(end).Round(time.Millisecond))
}
