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

// probeCache is how long the result of a check is cached. Checks lock the queues, and the rate
// of probes is not limited.
const probeCache = time.Second

// errWithheld replaces a reason that the caller is not authorized to see.
var errWithheld = errors.New("reason withheld")

// roots are the paths of the probes.
var roots = []string{"/healthz", "/livez", "/readyz"}

// isRoot returns whether path runs all checks of a probe.
func isRoot(path string) bool { return slices.Contains(roots, path) }

// isProbe returns whether path is open to all callers.
func isProbe(path string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// maySeeReasons returns a function that checks whether the caller may see why checks fail.
// reasons must allow the caller to get the path of the check. Anonymous callers never may.
func maySeeReasons(reasons authorizer.Authorizer) func(*http.Request) bool {
	return func(r *http.Request) bool {
		u, ok := request.UserFrom(r.Context())
		if !ok || u.GetName() == user.Anonymous || reasons == nil {
			return false
		}
		path := r.URL.Path
		if isRoot(path) {
			path += "/" // stands for all of its checks
		}
		decision, _, err := reasons.Authorize(r.Context(), authorizer.AttributesRecord{User: u, Verb: "get", Path: path})
		return err == nil && decision == authorizer.DecisionAllow
	}
}

// cached returns f with its result cached for [probeCache].
func cached[T any](f func(*http.Request) T) func(*http.Request) T {
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

// withheld wraps checks so that their results are cached. failures returns the reason of each
// failed check. On its own path, a check shows the reason only to callers that may see it. On
// the paths of the probes, the library withholds it.
func withheld(checks []healthz.HealthChecker, maySee func(*http.Request) bool) (all []healthz.HealthChecker,
	failures func(*http.Request) []string) {
	results := make([]func(*http.Request) error, len(checks))
	for i, check := range checks {
		results[i] = cached(check.Check)
		all = append(all, healthz.NamedCheck(check.Name(), func(r *http.Request) error {
			err := results[i](r)
			if err != nil && !isRoot(r.URL.Path) && !maySee(r) {
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

// withReasons adds failure reasons and notes to verbose probes, if the caller may see them. It
// also adds the notes to /statusz in plain text.
func withReasons(next http.Handler, failures map[string]func(*http.Request) []string, notes func() []string,
	maySee func(*http.Request) bool) http.Handler {
	noted := cached(func(*http.Request) []string {
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
		case isRoot(r.URL.Path) && r.URL.Query().Has("verbose") && maySee(r):
			lines = failures[r.URL.Path](r)
		default:
			return
		}
		for _, line := range append(lines, noted(r)...) {
			fmt.Fprintln(w, line)
		}
	})
}
