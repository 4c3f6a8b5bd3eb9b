// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/flood"
)

// Transport sees the writes of one controller, by whichever of its clients. It may be
// used by several goroutines. A nil Transport sees nothing. Make it with [New].
type Transport struct {
	controller string
	metrics    *Metrics
	refusal    error
	denials    denials
	lines      flood.Limiter // of the log
}

// New returns the transport of the named controller, which counts in metrics, if that is
// not nil. A write that fails with an error that wraps refusal was refused before it was
// sent, as leadership.ErrNotLeading says; nil: none is.
func New(controller string, metrics *Metrics, refusal error) *Transport {
	return &Transport{controller: controller, metrics: metrics, refusal: refusal}
}

// Wrap returns a RoundTripper that sees what is written through it; for
// [k8s.io/client-go/rest.Config.Wrap], after whatever else refuses writes: the wrapper
// that is added last sees the result of all others.
func (t *Transport) Wrap(next http.RoundTripper) http.RoundTripper {
	return &seen{transport: t, next: next}
}

// Denied returns the permissions that are missing as far as is known, sorted by
// resource, verb and namespace.
func (t *Transport) Denied() []Denial { return t.denials.list(time.Now()) }

// Withheld returns the error of a write that would not be sent now, and counts it, nil if
// it would be sent. Who must ask the API server something before a write asks this first.
func (t *Transport) Withheld(ctx context.Context, verb string, resource schema.GroupResource, namespace, name string) error {
	if t == nil {
		return nil
	}
	target := target{permission{verb, resource, namespace}, name}
	message := t.denials.withheld(target.permission, time.Now())
	if message == "" {
		return nil
	}
	t.begin(ctx, target)(ResultWithheld, 0)
	return forbidden(target, message)
}

// Skip counts a write that was not needed: what is there was compared with what should
// be, and was equal. The resource is called as in a [Write].
func (t *Transport) Skip(resource string) {
	if t != nil {
		t.metrics.skip(t.controller, resource)
	}
}

// seen is the transport on the way of one client.
type seen struct {
	transport *Transport
	next      http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport underneath.
func (s *seen) WrappedRoundTripper() http.RoundTripper { return s.next }

// RoundTrip implements http.RoundTripper.
func (s *seen) RoundTrip(request *http.Request) (*http.Response, error) {
	target, ok := targetOf(request)
	if !ok {
		return s.next.RoundTrip(request)
	}
	t, ctx := s.transport, request.Context()
	if message := t.denials.admit(target.permission, time.Now()); message != "" {
		if request.Body != nil {
			request.Body.Close() // as every RoundTripper must
		}
		t.begin(ctx, target)(ResultWithheld, 0)
		return answer(request, forbidden(target, message)), nil
	}
	end, began, took := t.begin(ctx, target), time.Now(), time.Duration(0)
	response, err := s.next.RoundTrip(request)
	if err == nil {
		// What became of the write is not known before.
		err = fetch(response)
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		took = time.Since(began)
	}
	if err == nil {
		err = t.learn(ctx, target, response)
	}
	end(t.resultOf(response, err), took)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// fetch reads the body of an answer into memory, which a client does anyway.
func fetch(response *http.Response) error {
	content, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("reading the answer to a write: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(content))
	return nil
}

// learn learns from the answer to a write whether the permission for it is there. An
// error is that of reading the answer.
func (t *Transport) learn(ctx context.Context, target target, response *http.Response) error {
	if response.StatusCode == http.StatusForbidden {
		status, err := statusIn(response)
		if err != nil || status == nil {
			return err
		}
		if reason := reasonOf(*status); reason != nil {
			// Of another permission, such as to create what a patch finds missing,
			// nothing is known but for this very object.
			if reason.permission == target.permission && t.denials.found(target.permission, reason.message, time.Now()) {
				t.tellMissing(ctx, target.permission, reason.message)
			}
			return nil
		}
	}
	if authorized(response.StatusCode) && t.denials.granted(target.permission, time.Now()) {
		t.tellGranted(ctx, target.permission)
	}
	return nil
}

// authorized tells whether an answer of this code comes from behind the authorizer.
func authorized(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code < http.StatusInternalServerError
	}
}

func (t *Transport) resultOf(response *http.Response, err error) Result {
	switch {
	case err != nil && t.refusal != nil && errors.Is(err, t.refusal):
		return ResultRefused
	case err != nil:
		return ResultFailed
	case response.StatusCode/100 == 2:
		return ResultWritten
	case response.StatusCode == http.StatusConflict:
		return ResultConflict
	case response.StatusCode == http.StatusForbidden:
		return ResultDenied
	default:
		return ResultFailed
	}
}

// begin notes that a write begins. The returned function notes what became of it.
func (t *Transport) begin(ctx context.Context, target target) (end func(Result, time.Duration)) {
	resource := target.resource.String()
	complete := putDown(ctx, target.verb, resource)
	return func(result Result, took time.Duration) {
		t.metrics.count(t.controller, target.verb, resource, result)
		complete(result, took)
	}
}

// tellMissing logs that a permission was found to be missing, as the message says.
func (t *Transport) tellMissing(ctx context.Context, p permission, message string) {
	if ok, heldBack := t.lines.Allow(p.what(), "missing"); ok {
		klog.FromContext(ctx).Error(errors.New(message), "Permission is missing, writes wait for it",
			"verb", p.verb, "resource", p.resource.String(), "namespace", p.namespace, "repeated", heldBack)
	}
}

// tellGranted logs that a permission that was missing is there.
func (t *Transport) tellGranted(ctx context.Context, p permission) {
	if ok, heldBack := t.lines.Allow(p.what(), "granted"); ok {
		klog.FromContext(ctx).Info("Permission is granted again",
			"verb", p.verb, "resource", p.resource.String(), "namespace", p.namespace, "repeated", heldBack)
	}
}
