// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

const (
	// deletionsPath is the path below which a PUT lets a controller delete without a limit.
	deletionsPath = "/debug/deletions"
	// allowedFor is how long that lasts.
	allowedFor = 10 * time.Minute
)

// deletions returns the handler of the pages below deletionsPath.
func deletions(r reporter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPut {
			w.Header().Set("Allow", http.MethodPut)
			http.Error(w, "Only PUT is allowed", http.StatusMethodNotAllowed)
			return
		}
		name, err := r.Resolve(strings.Trim(strings.TrimPrefix(request.URL.Path, deletionsPath), "/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		answer, err := r.allowDeletions(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		klog.FromContext(request.Context()).Info("Allowed deletions without a limit", "controller", name, "for", allowedFor)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, answer)
	})
}

// allowDeletions lets a controller delete without a limit, and returns the answer for the caller.
func (r reporter) allowDeletions(name string) (answer string, err error) {
	enabled, err := r.config.Controllers.Enabled(r.config.Generic.Selection.Get())
	if err != nil {
		return "", err
	}
	if r.shared.DryRun != nil {
		return "", errors.New("a shadow deletes nothing: ask the leader")
	}
	switch limit := r.shared.MaxDeletionsPerMinute(); {
	case !slices.Contains(enabled, name):
		return "", fmt.Errorf("%s is disabled in this process", name)
	case r.shared.Gate.Check() != nil && r.election != nil:
		return "", fmt.Errorf("this process does not lead, ask the leader: %v", r.election.Status())
	case limit == 0:
		return name + " deletes without a limit: --max-deletions-per-minute is 0", nil
	}
	until := r.shared.AllowDeletions(name, allowedFor)
	return fmt.Sprintf("%s may delete without a limit for %v, until %s; stopped deletions are tried again within 30 s", name,
		allowedFor, until.UTC().Format(time.RFC3339)), nil
}
