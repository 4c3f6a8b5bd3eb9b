// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

var (
	// ErrNotLeading is returned for a write that was refused before it was sent. The error
	// of the client wraps it, together with the reason why the process does not lead.
	ErrNotLeading = errors.New("write refused: this process does not lead")
	// errNoTerm is the reason for a process that has not led yet.
	errNoTerm = errors.New("this process has not been elected")
	// errWriteTimeout is the cause when a write is given up.
	errWriteTimeout = errors.New("write timeout")
)

// Gate lets writes pass only while this process leads. It is safe for concurrent use.
// Create it with [NewGate].
type Gate struct {
	timeout time.Duration
	term    atomic.Pointer[Term]
}

// NewGate returns a gate that is closed until a term begins. It gives up each write after
// writeTimeout.
func NewGate(writeTimeout time.Duration) *Gate { return &Gate{timeout: writeTimeout} }

// admit lets writes pass while the term is valid.
func (g *Gate) admit(term *Term) {
	if g != nil {
		g.term.Store(term)
	}
}

// Check returns nil while writes pass, otherwise why they do not.
func (g *Gate) Check() error { return valid(g.term.Load()) }

// Wrap returns a RoundTripper that always passes reads to next, and writes only during a
// term. It is for [k8s.io/client-go/rest.Config.Wrap]. Each write, including reading the
// response, is bounded by the write timeout and canceled when the term is lost. Do not wrap
// clients of Leases, Events, TokenReviews and SubjectAccessReviews, which do not depend on
// leading.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return &gated{gate: g, next: next}
}

type gated struct {
	gate *Gate
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (t *gated) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *gated) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(request)
	}
	term := t.gate.term.Load()
	if err := valid(term); err != nil {
		if request.Body != nil {
			request.Body.Close() // required of every RoundTripper
		}
		return nil, err
	}

	ctx, cancel := context.WithTimeoutCause(request.Context(), t.gate.timeout, errWriteTimeout)
	ctx, cancelCause := context.WithCancelCause(ctx)
	detach := context.AfterFunc(term.open, func() { cancelCause(context.Cause(term.open)) })
	done := func() {
		detach()
		cancel()
	}
	response, err := t.next.RoundTrip(t.gate.bounded(request.WithContext(ctx)))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && request.Context().Err() == nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		done()
		return nil, err
	}
	response.Body = &body{response.Body, done}
	return response, nil
}

// valid returns nil if the term allows writes, otherwise an [ErrNotLeading] with the reason.
func valid(term *Term) error {
	err := errNoTerm
	if term != nil {
		err = term.Valid()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeading, err)
	}
	return nil
}

// bounded makes the API server give up the request after the same timeout, unless the
// request has one of its own.
func (g *Gate) bounded(request *http.Request) *http.Request {
	if strings.Contains(request.URL.RawQuery, "timeout=") {
		return request
	}
	url := *request.URL
	if url.RawQuery != "" {
		url.RawQuery += "&"
	}
	url.RawQuery += "timeout=" + g.timeout.String()
	request.URL = &url
	return request
}

// body is the body of the response to a write. Closing it completes the write.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
