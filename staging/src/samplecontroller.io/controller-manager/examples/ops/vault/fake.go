// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"net/http"
	"sync"
)

// Fake is a transport that answers requests to the vault in tests. The zero value is ready to use. Its
// methods are safe for concurrent use.
type Fake struct {
	mutex    sync.Mutex
	requests []string
	broken   bool
}

// RoundTrip implements http.RoundTripper.
func (f *Fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
	if f.broken {
		response.StatusCode, response.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	}
	return response, nil
}

// Set breaks or repairs the vault, and returns the requests since the last call.
func (f *Fake) Set(broken bool) (requests []string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	requests, f.requests, f.broken = f.requests, nil, broken
	return requests
}
