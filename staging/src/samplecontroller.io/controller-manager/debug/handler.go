// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Path is the root of the pages.
const Path = "/debug/controllers"

// Limits of list entries.
const (
	defaultLimit = 10
	maxLimit     = 200
)

// ErrNoExplanation is the error of [Source] for a controller that does not explain its objects.
var ErrNoExplanation = errors.New("the controller does not explain single objects")

// Source provides the data of the pages. It must be safe for concurrent use. Package manager has one.
type Source interface {
	// Report returns a report on all controllers, with at most limit entries in each list.
	Report(limit int) Report
	// Resolve returns the name of the controller with this name or alias. If there is none,
	// the error lists the known names.
	Resolve(given string) (name string, err error)
	// Explain returns what the named controller does about an object. It returns
	// [ErrNoExplanation] if the controller does not explain objects. Any error is served as 404.
	Explain(controller string, key cache.ObjectName) (Explanation, error)
}

// Handler returns the handler of the pages below [Path]. It answers an invalid limit with 400, an
// unknown path, controller or object with 404, and other methods than GET with 405.
func Handler(source Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		limit, err := limitOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, Path), "/"), "/")
		if len(parts) == 1 && parts[0] == "" {
			report := source.Report(limit)
			answer(w, r, report, func(w io.Writer) { PrintHead(w, report); PrintReport(w, report) })
			return
		}
		if len(parts) != 1 && len(parts) != 3 {
			http.Error(w, "Not found, use "+Path+"[/<controller>[/<namespace>/<object>]]", http.StatusNotFound)
			return
		}
		name, err := source.Resolve(parts[0])
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if len(parts) == 1 {
			report := source.Report(limit).of(name)
			answer(w, r, report, func(w io.Writer) { PrintHead(w, report); PrintController(w, report) })
			return
		}
		explanation, err := source.Explain(name, cache.NewObjectName(parts[1], parts[2]))
		if err != nil {
			http.Error(w, fmt.Sprintf("%s: %v", name, err), http.StatusNotFound)
			return
		}
		answer(w, r, explanation, func(w io.Writer) { PrintExplanation(w, explanation) })
	})
}

// of returns the report with only one controller.
func (r Report) of(name string) Report {
	var one []Controller
	for _, c := range r.Controllers {
		if c.Name == name {
			one = append(one, c)
		}
	}
	r.Controllers = one
	return r
}

func limitOf(r *http.Request) (int, error) {
	given := r.URL.Query().Get("limit")
	if given == "" {
		return defaultLimit, nil
	}
	limit, err := strconv.Atoi(given)
	if err != nil || limit < 1 || limit > maxLimit {
		return 0, fmt.Errorf("limit=%q: must be a number from 1 to %d", given, maxLimit)
	}
	return limit, nil
}

// answer writes JSON or, by default, text.
func answer(w http.ResponseWriter, r *http.Request, value any, print func(io.Writer)) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(value) // the client has disconnected
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	print(w)
}
