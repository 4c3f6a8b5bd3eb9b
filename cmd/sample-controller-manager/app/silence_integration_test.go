// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster/clustertest"
)

// silencer is a proxy to the API server. While silent is set, matching requests get no
// response and do not reach the API server.
type silencer struct {
	*clustertest.Proxy
	silent     atomic.Bool
	unanswered atomic.Int64 // requests so far
}

// startSilencer starts a silencer for the requests that match. silent is not set yet.
func startSilencer(t *testing.T, match func(*http.Request) bool) *silencer {
	t.Helper()
	s := &silencer{}
	s.Proxy = clustertest.StartProxy(t, shared.Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.silent.Load() || !match(r) {
				next.ServeHTTP(w, r)
				return
			}
			s.unanswered.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // a server notices a closed connection only after it has read the body
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // a return would send a response
		})
	}, nil)
	return s
}
