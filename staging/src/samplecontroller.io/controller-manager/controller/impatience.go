// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"strconv"
	"time"
)

// impatience limits how long a client repeats a request within one call. client-go does so up
// to ten times if a response has the header Retry-After, and holds the worker until then. The
// loop that called it can do something else in the meantime.
type impatience struct {
	// timeout is that of the client. patience is how long a call may take before its last
	// response is returned as it is.
	timeout, patience time.Duration
}

func (i impatience) wrap(next http.RoundTripper) http.RoundTripper {
	return &impatient{impatience: i, next: next}
}

type impatient struct {
	impatience
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (t *impatient) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	const header = "Retry-After"
	seconds, err := strconv.Atoi(response.Header.Get(header))
	if err != nil {
		return response, nil
	}
	// All requests of a call share its deadline. If that of the sync is earlier, the call seems
	// to take longer than it does, which makes it end sooner.
	deadline, ok := request.Context().Deadline()
	taken := t.timeout - time.Until(deadline)
	if ok && taken+time.Duration(seconds)*time.Second >= t.patience {
		response.Header.Del(header)
	}
	return response, nil
}
