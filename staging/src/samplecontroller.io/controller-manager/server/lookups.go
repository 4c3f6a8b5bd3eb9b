// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/transport"
)

// lookups are the requests that a client makes before it is used to serve. The library
// makes them with a context of its own.
type lookups struct {
	// over says that there are no more: what the client sends from now on is for who
	// asks, and goes on while the process drains.
	over atomic.Bool
}

// boundTo has the lookups end when ctx does.
func (l *lookups) boundTo(ctx context.Context) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &lookup{next, func(request *http.Request) *http.Request {
			if l.over.Load() {
				return request
			}
			requestCtx, cancel := context.WithCancel(request.Context())
			context.AfterFunc(ctx, cancel)
			return request.WithContext(requestCtx)
		}}
	}
}

type lookup struct {
	next  http.RoundTripper
	bound func(*http.Request) *http.Request
}

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *lookup) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *lookup) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(t.bound(request))
}
