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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/reconcile"
)

// Transport sees the writes of one controller, by whichever of its clients. It may be
// used by several goroutines. A nil Transport sees nothing. Make it with [New].
type Transport struct {
	controller string
	metrics    *Metrics
	refusal    error
	denials    denials
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
// resource and verb.
func (t *Transport) Denied() []Denial { return t.denials.list(time.Now()) }

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
	end, began, took := t.begin(ctx, target.Write), time.Now(), time.Duration(0)
	response, err := s.next.RoundTrip(request)
	var body []byte
	if err == nil {
		// What became of the write is not known before.
		body, err = fetch(response)
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		took = time.Since(began)
	}
	end(t.resultOf(response, err), took)
	if err != nil {
		return nil, err
	}
	t.learn(ctx, target, response.StatusCode, body)
	return response, nil
}

// fetch reads the body of an answer into memory, which a client does anyway. It can still be
// read after that.
func fetch(response *http.Response) (body []byte, err error) {
	body, err = io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the answer to a write: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// statuses decodes the error that the API server answers, in whatever encoding.
var statuses = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// learn learns from the answer to a write whether the permission for it is missing.
func (t *Transport) learn(ctx context.Context, target target, code int, body []byte) {
	switch {
	case code/100 == 2 && t.denials.allow(target, time.Now()):
		target.logger(ctx).Info("Permission is granted again")
	case code == http.StatusForbidden:
		object, _, err := statuses.Decode(body, nil, nil)
		status, ok := object.(*metav1.Status)
		if err == nil && ok && isMissingPermission(target, *status) && t.denials.deny(target, time.Now()) {
			target.logger(ctx).Error(errors.New(status.Message), "Permission is missing, retrying writes with backoff")
		}
	}
}

func (t target) logger(ctx context.Context) klog.Logger {
	return klog.LoggerWithValues(klog.FromContext(ctx), "verb", t.Verb, "resource", t.Resource, "namespace", t.namespace)
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
func (t *Transport) begin(ctx context.Context, write Write) (end func(Result, time.Duration)) {
	record := reconcile.RecordWrite(ctx, write.Verb, write.Resource)
	return func(result Result, took time.Duration) {
		t.metrics.count(t.controller, write.Verb, write.Resource, result)
		record(string(result), took)
	}
}
