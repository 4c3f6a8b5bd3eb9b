// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// What callers may cost, whoever they are. Nobody who means well comes near: these are
// far from what probes, a few scrapers and an operator ask for.
const (
	// maxConnections is how many are open at once, if the process may open that many
	// files: see connectionLimit.
	maxConnections = 1000
	// maxStreams is how many requests one connection has at once, by HTTP/2.
	maxStreams = 10
	// requestTimeout is how long a request may take to arrive, to be answered, and its
	// answer to be fetched. It is longer than the API server is asked about who asks.
	requestTimeout = time.Minute

	// ratePerHost is how many requests a second are served to one host, and burstPerHost
	// how many at once if it has not asked for a while. rateOfAll and burstOfAll are for
	// all hosts together, of those requests that are authorised. Probes are not counted.
	ratePerHost, burstPerHost = 5, 50
	rateOfAll, burstOfAll     = 10, 100
	// maxDelay is how long a request waits for its turn, or to be told that it is in
	// vain: who asks again at once after that costs little.
	maxDelay = 3 * time.Second
	// maxHosts is how many hosts are told apart.
	maxHosts = 1000
)

// connectionLimit returns how many connections may be open at once in a process that may
// open so many files. Callers get a quarter: the rest is for the work, above all for
// connections to the API server.
func connectionLimit(files uint64) int { return int(max(1, min(maxConnections, files/4))) }

// maxFiles returns how many files the process may open.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// withTimeouts bounds the time of each request.
func withTimeouts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setDeadline(w, time.Now().Add(requestTimeout))
		next.ServeHTTP(w, r)
	})
}

// withTimeForProfiles lets profiles take the time that was asked for.
func withTimeForProfiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			setDeadline(w, time.Time{})
		}
		next.ServeHTTP(w, r)
	})
}

// setDeadline sets until when a request may arrive and its answer be fetched. The
// servers of HTTP/1 and HTTP/2 both can.
func setDeadline(w http.ResponseWriter, deadline time.Time) {
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(deadline)
	_ = controller.SetWriteDeadline(deadline)
}

// withTurns has each request, but for probes, wait for its turn by the limiter that is
// its own.
func withTurns(next http.Handler, limiterOf func(*http.Request) *rate.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		turn := limiterOf(r).Reserve()
		delay := turn.Delay()
		inVain := delay > maxDelay
		if inVain {
			turn.Cancel()
			delay = maxDelay
		}
		if delay > 0 {
			select {
			case <-r.Context().Done():
				turn.Cancel()
				return
			case <-time.After(delay):
			}
		}
		if inVain {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests: ask again later", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// perHost returns the limiter of the host that a request comes from.
func perHost() func(*http.Request) *rate.Limiter {
	hosts := lru.New(maxHosts)
	return func(r *http.Request) *rate.Limiter {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		if limiter, ok := hosts.Get(host); ok {
			return limiter.(*rate.Limiter)
		}
		// Of two requests that come at once one gets a limiter that nobody else has.
		limiter := rate.NewLimiter(ratePerHost, burstPerHost)
		hosts.Add(host, limiter)
		return limiter
	}
}

// ofAll returns the one limiter that all requests have in common.
func ofAll() func(*http.Request) *rate.Limiter {
	limiter := rate.NewLimiter(rateOfAll, burstOfAll)
	return func(*http.Request) *rate.Limiter { return limiter }
}
