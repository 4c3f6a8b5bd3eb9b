// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/e2e/framework"
)

// placementProxy is a proxy before the API server that stops where a status is written
// that has placements: before the API server gets it, or before its answer is passed
// on.
type placementProxy struct {
	*clustertest.Proxy
	before, between atomic.Bool   // where it stops
	stopped         chan struct{} // is sent to when it does
}

// hasPlacements marks the requests of such writes.
const hasPlacements = "Has-Placements"

// startPlacementProxy starts one that stops nowhere.
func startPlacementProxy(t *testing.T) *placementProxy {
	t.Helper()
	p := &placementProxy{stopped: make(chan struct{}, 100)}
	p.Proxy = clustertest.StartProxy(t, framework.Cluster(), p.receive, func(response *http.Response) error {
		if response.Request.Header.Get(hasPlacements) != "" {
			p.pass(&p.between, response.Request)
		}
		return nil
	})
	return p
}

func (p *placementProxy) receive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") && strings.Contains(r.URL.Path, "/icecreams/") {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client is gone
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte(`"placements":`)) {
				r.Header.Set(hasPlacements, "yes")
				p.pass(&p.before, r)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// pass waits at a place until the client is gone, if it stops there.
func (p *placementProxy) pass(place *atomic.Bool, r *http.Request) {
	if place.Load() {
		p.stopped <- struct{}{}
		<-r.Context().Done()
	}
}
