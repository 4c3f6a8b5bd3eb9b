// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"samplecontroller.io/controller-manager/internal/longwrite"
	"samplecontroller.io/controller-manager/internal/requests"
)

var (
	// ErrNotLeading is returned for a write that was refused before it was sent. The error
	// of the client wraps it, together with the reason why the process does not lead.
	ErrNotLeading = errors.New("write refused: this process does not lead")
	// errNoTerm is the reason for a process that has not led yet.
	errNoTerm = errors.New("this process has not been elected")
	// errReadTimeout is the cause when a read is given up.
	errReadTimeout = errors.New("read timeout")
)

// Gate lets writes pass only while this process leads. It is safe for concurrent use.
// Create it with [NewGate].
type Gate struct {
	timeout time.Duration
	term    atomic.Pointer[Term]
}

// NewGate returns a gate that is closed until a term begins. It gives up each write after
// writeTimeout, except long writes: see [Gate.Wrap].
func NewGate(writeTimeout time.Duration) *Gate { return &Gate{timeout: writeTimeout} }

// WriteTimeout returns how long a write may take that is not a long one.
func (g *Gate) WriteTimeout() time.Duration { return g.timeout }

// admit lets writes pass while the term is valid.
func (g *Gate) admit(term *Term) {
	if g != nil {
		g.term.Store(term)
	}
}

// Check returns nil while writes pass, otherwise why they do not.
func (g *Gate) Check() error { return valid(g.term.Load()) }

// Work returns a context that ends when the work of the current term must end, or the context of
// the last term, which has ended. Before the first term it does not end.
func (g *Gate) Work() context.Context {
	if term := g.term.Load(); term != nil {
		return term.Ctx
	}
	return context.Background()
}

// Wrap returns a RoundTripper that always passes reads to next, and writes only during a
// term. It is for [k8s.io/client-go/rest.Config.Wrap]. Each write, including reading the
// response, is bounded by the write timeout and canceled when the term is lost. Do not wrap
// clients of Leases, Events, TokenReviews and SubjectAccessReviews, which do not depend on
// leading.
//
// A request that executes a command in a Pod, attaches to it or forwards a port counts as a
// write, even if its method is GET. The gate does not close the stream that such a request
// opens, also not when the term is lost: give the stream a context with a short timeout.
//
// A long write, whose context is from reconcile.WithLongWrite, has until the last moment at
// which any write of this term would be given up if the Lease were not renewed again. That is
// still before another process may take the Lease. It is also canceled when the work of the
// term is told to end, so that it does not delay a shutdown.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return &gated{gate: g, next: next}
}

// WrapAll is like Wrap, and bounds each read by the write timeout, too. It is for clients that
// do not watch.
func (g *Gate) WrapAll(next http.RoundTripper) http.RoundTripper {
	return &gated{gate: g, next: next, boundsReads: true}
}

type gated struct {
	gate        *Gate
	next        http.RoundTripper
	boundsReads bool
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (t *gated) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *gated) RoundTrip(request *http.Request) (*http.Response, error) {
	if !requests.IsWrite(request) {
		if !t.boundsReads {
			return t.next.RoundTrip(request)
		}
		return t.send(request, t.gate.timeout, errReadTimeout, context.Background())
	}
	term := t.gate.term.Load()
	if err := valid(term); err != nil {
		if request.Body != nil {
			request.Body.Close() // required of every RoundTripper
		}
		return nil, err
	}
	limit, until := t.gate.timeout, term.open
	// While the work drains, a long write would be cut off at once.
	if longwrite.Allowed(request.Context()) && term.Ctx.Err() == nil {
		limit, until = max(limit, term.longest(limit)), term.Ctx
	}
	return t.send(request, limit, longwrite.ErrTimeout, until)
}

// send sends a request, and gives it up with the cause timeout after limit, or when until ends.
func (t *gated) send(request *http.Request, limit time.Duration, timeout error, until context.Context) (*http.Response,
	error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), limit, timeout)
	ctx, cancelCause := context.WithCancelCause(ctx)
	detach := context.AfterFunc(until, func() { cancelCause(cutOff(until)) })
	exchange := &exchange{caller: request.Context(), ctx: ctx, done: func() {
		detach()
		cancel()
	}}
	response, err := t.next.RoundTrip(bounded(request.WithContext(ctx), limit))
	if err != nil {
		err = exchange.explain(err)
		exchange.done()
		return nil, err
	}
	response.Body = &body{response.Body, exchange}
	return response, nil
}

// cutOff returns why a write was given up when the context ended. A long write that was cut off
// by the end of its term's work counts like one that timed out.
func cutOff(until context.Context) error {
	why := context.Cause(until)
	if errors.Is(why, ErrLost) || errors.Is(why, errStopped) {
		return why
	}
	return fmt.Errorf("%w: cut off because this process stops leading: %w", longwrite.ErrTimeout, why)
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

// bounded makes the API server give up the request after the same time, unless the request has
// a shorter timeout of its own.
func bounded(request *http.Request, limit time.Duration) *http.Request {
	query := request.URL.Query()
	if own, err := time.ParseDuration(query.Get("timeout")); err == nil && own > 0 && own < limit {
		return request
	}
	query.Set("timeout", limit.String())
	url := *request.URL
	url.RawQuery = query.Encode()
	request.URL = &url
	return request
}

// exchange is one bounded request with its response.
type exchange struct {
	caller context.Context // of the request
	ctx    context.Context // ends also when the request is given up
	done   func()
}

// explain adds to an error why the request was given up.
func (e *exchange) explain(err error) error {
	if cause := context.Cause(e.ctx); cause != nil && e.caller.Err() == nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// body is the body of the response. Closing it completes the exchange.
type body struct {
	io.ReadCloser
	exchange *exchange
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.exchange.explain(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.exchange.done()
	return b.ReadCloser.Close()
}
