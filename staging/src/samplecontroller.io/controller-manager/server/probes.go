// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/healthz"
)

// probeCache is how long the result of a check holds. Checks take the locks of queues: a
// flood of probes, which nothing limits, must not.
const probeCache = time.Second

// errWithheld takes the place of a reason that the caller may not know.
var errWithheld = errors.New("reason withheld")

// roots are the paths of the probes.
var roots = []string{"/healthz", "/livez", "/readyz"}

// isRoot tells whether the path is that of a probe with all its checks.
func isRoot(path string) bool { return slices.Contains(roots, path) }

// isProbe tells whether the path is open to all.
func isProbe(path string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// mayKnow returns a function that tells whether the caller may know why checks fail: if
// reasons lets it get the path of a single check. Anonymous callers may not.
func mayKnow(reasons authorizer.Authorizer) func(*http.Request) bool {
	return func(r *http.Request) bool {
		u, ok := request.UserFrom(r.Context())
		if !ok || u.GetName() == user.Anonymous || reasons == nil {
			return false
		}
		path := r.URL.Path
		if isRoot(path) {
			path += "/" // as for all of its checks
		}
		decision, _, err := reasons.Authorize(r.Context(), authorizer.AttributesRecord{User: u, Verb: "get", Path: path})
		return err == nil && decision == authorizer.DecisionAllow
	}
}

// shortly returns f with its result kept for [probeCache].
func shortly[T any](f func(*http.Request) T) func(*http.Request) T {
	var mutex sync.Mutex
	var result T
	var at time.Time
	return func(r *http.Request) T {
		mutex.Lock()
		defer mutex.Unlock()
		if at.IsZero() || time.Since(at) >= probeCache {
			result, at = f(r), time.Now()
		}
		return result
	}
}

// withheld returns checks whose results are kept for a moment, and the results by name.
// Under a path of its own a check says why it fails only to callers that may know. The
// library withholds it where it shows all checks.
func withheld(checks []healthz.HealthChecker, mayKnow func(*http.Request) bool) (all []healthz.HealthChecker, failures func(*http.Request) []string) {
	results := make([]func(*http.Request) error, len(checks))
	for i, check := range checks {
		results[i] = shortly(check.Check)
		all = append(all, healthz.NamedCheck(check.Name(), func(r *http.Request) error {
			err := results[i](r)
			if err != nil && !isRoot(r.URL.Path) && !mayKnow(r) {
				return errWithheld
			}
			return err
		}))
	}
	return all, func(r *http.Request) []string {
		var lines []string
		for i, check := range checks {
			if err := results[i](r); err != nil {
				lines = append(lines, fmt.Sprintf("%s: %v", check.Name(), err))
			}
		}
		return lines
	}
}

// withReasons adds to a verbose probe why checks fail, and notes, if the caller may know,
// and notes to the page of status for people.
func withReasons(next http.Handler, failures map[string]func(*http.Request) []string, notes func() []string, mayKnow func(*http.Request) bool) http.Handler {
	noted := shortly(func(*http.Request) []string {
		if notes == nil {
			return nil
		}
		return notes()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			return
		}
		var lines []string
		switch {
		case r.URL.Path == "/statusz":
		case isRoot(r.URL.Path) && r.URL.Query().Has("verbose") && mayKnow(r):
			lines = failures[r.URL.Path](r)
		default:
			return
		}
		for _, line := range append(lines, noted(r)...) {
			fmt.Fprintln(w, line)
		}
	})
}
