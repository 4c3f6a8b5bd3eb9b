// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
)

// Limits on callers. Probes, a few scrapers and an operator stay far below them.
const (
	// maxConnections is how many connections may be open at once. A low limit on open files
	// lowers it: see connectionLimit.
	maxConnections = 1000
	// maxStreams is how many requests one HTTP/2 connection may have at once.
	maxStreams = 10
	// maxInFlight is how many authorized read-only requests are served at once, and how many
	// others. Probes do not count.
	maxInFlight = 20
	// requestTimeout limits the time to receive a request, serve it and send the response. It
	// is longer than delegated authentication takes.
	requestTimeout = time.Minute
)

// connectionLimit returns how many connections may be open at once in a process that may open
// this many files. Callers get a quarter. The rest is for the process itself, mainly for
// connections to the API server.
func connectionLimit(files uint64) int { return int(max(1, min(maxConnections, files/4))) }

// withTimeouts limits the time of each request.
func withTimeouts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setDeadline(w, time.Now().Add(requestTimeout))
		next.ServeHTTP(w, r)
	})
}

// withTimeForProfiles removes the time limit for profiles, which take as long as requested.
func withTimeForProfiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			setDeadline(w, time.Time{})
		}
		next.ServeHTTP(w, r)
	})
}

// setDeadline sets the deadline for receiving the request and sending the response. Both
// HTTP/1 and HTTP/2 support it.
func setDeadline(w http.ResponseWriter, deadline time.Time) {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(deadline)
	_ = controller.SetWriteDeadline(deadline)
}

// withMaxInFlight rejects a request with 429 while too many others are served. It counts only
// authorized requests, so that other callers cannot block authorized ones.
func withMaxInFlight(next http.Handler) http.Handler {
	return filters.WithMaxInFlightLimit(next, maxInFlight, maxInFlight,
		func(r *http.Request, _ *request.RequestInfo) bool {
			return isProbe(r.URL.Path)
		})
}

// connectionLimiter is a listener that closes the oldest connection to make room for a new
// one. If new connections had to wait instead, idle callers would delay probes.
type connectionLimiter struct {
	net.Listener
	accepted []net.Conn // ring of the newest connections; older ones are closed
	next     int
}

func newConnectionLimiter(listener net.Listener, limit int) *connectionLimiter {
	return &connectionLimiter{Listener: listener, accepted: make([]net.Conn, limit)}
}

// Accept implements net.Listener. It must not be called concurrently; http.Server does not.
func (l *connectionLimiter) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if oldest := l.accepted[l.next]; oldest != nil {
		oldest.Close() // no effect if already closed
	}
	l.accepted[l.next] = connection
	l.next = (l.next + 1) % len(l.accepted)
	return connection, nil
}
