// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"
)

// withNotes adds notes to what the given handler answers to a verbose probe, and to
// its page of status for people.
func withNotes(next http.Handler, notes func() []string) http.Handler {
	if notes == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			return
		}
		switch r.URL.Path {
		case "/healthz", "/livez", "/readyz":
			if !r.URL.Query().Has("verbose") {
				return
			}
		case "/statusz":
		default:
			return
		}
		for _, note := range notes() {
			fmt.Fprintln(w, note)
		}
	})
}
