// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
)

// Silencer is a proxy to the API server. While silent is set, matching requests get no
// response and do not reach the API server.
type Silencer struct {
	*clustertest.Proxy
	Silent     atomic.Bool
	Unanswered atomic.Int64 // requests so far
}

// StartSilencer starts a silencer for the requests that match. silent is not set yet.
func StartSilencer(t *testing.T, match func(*http.Request) bool) *Silencer {
	t.Helper()
	s := &Silencer{}
	s.Proxy = clustertest.StartProxy(t, Cluster(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.Silent.Load() || !match(r) {
				next.ServeHTTP(w, r)
				return
			}
			s.Unanswered.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // a server notices a closed connection only after it has read the body
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // a return would send a response
		})
	}, nil)
	return s
}

// Cut sets or unsets silent, and closes all connections: those with open watches, or with requests that wait.
func (s *Silencer) Cut(silent bool) {
	s.Silent.Store(silent)
	s.CloseClientConnections()
}
