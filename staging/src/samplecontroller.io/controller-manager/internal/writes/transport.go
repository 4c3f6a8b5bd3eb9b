// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/longwrite"
	"samplecontroller.io/controller-manager/reconcile"
)

// Transport observes the writes of one controller through all its clients, and limits its long
// writes to one at a time. It is safe for concurrent use. A nil Transport does nothing. Create it with [New].
type Transport struct {
	controller string
	metrics    *Metrics
	refusals   []error
	denials    denials
	unserved   unserved
	long       atomic.Bool // whether a long write is in flight
	dryRun     bool
}

// New returns the transport of the named controller. metrics may be nil. A write whose error
// wraps one of refusals, such as leadership.ErrNotLeading, counts as refused before it was sent.
func New(controller string, metrics *Metrics, refusals ...error) *Transport {
	return &Transport{controller: controller, metrics: metrics, refusals: refusals}
}

// NewDryRun is like [New] for a process whose writes are all dry runs. They are not counted.
func NewDryRun(controller string, refusals ...error) *Transport {
	return &Transport{controller: controller, refusals: refusals, dryRun: true}
}

// Wrap returns a RoundTripper that observes writes. It is for
// [k8s.io/client-go/rest.Config.Wrap]. Add it after wrappers that refuse writes: the last
// wrapper sees the results of all others.
func (t *Transport) Wrap(next http.RoundTripper) http.RoundTripper {
	return &seen{transport: t, next: next}
}

// Denied returns the known missing permissions and the subresources that the API server does not
// serve, sorted by resource and verb.
func (t *Transport) Denied() []Denial {
	now := time.Now()
	all := append(t.denials.list(now), t.unserved.list(now)...)
	slices.SortFunc(all, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return all
}

// Skip counts a write that was not needed because actual and desired state are equal.
// resource is named as in [Write].
func (t *Transport) Skip(resource string) {
	if t != nil {
		t.metrics.skip(t.controller, resource)
	}
}

// NoOp counts a patch that changed nothing. resource is named as in [Write].
func (t *Transport) NoOp(resource string) {
	if t != nil {
		t.metrics.noOp(t.controller, resource)
	}
}

// seen is the transport within one client.
type seen struct {
	transport *Transport
	next      http.RoundTripper
}

// WrappedRoundTripper lets client-go find the underlying transport.
func (s *seen) WrappedRoundTripper() http.RoundTripper { return s.next }

// RoundTrip implements http.RoundTripper.
func (s *seen) RoundTrip(request *http.Request) (*http.Response, error) {
	target, ok := targetOf(request)
	if !ok {
		return s.next.RoundTrip(request)
	}
	t, ctx := s.transport, request.Context()
	if target.isRead() {
		return s.read(request, target)
	}
	if longwrite.Allowed(ctx) {
		// One at a time, so that the other workers are free for objects whose writes succeed.
		if t.long.CompareAndSwap(false, true) {
			defer t.long.Store(false)
		} else {
			request = request.WithContext(longwrite.Refuse(ctx))
		}
	}
	end := t.begin(ctx, target.Write)
	response, err := s.next.RoundTrip(request)
	var body []byte
	if err == nil {
		// The result of the write is known only once the response is read.
		body, err = Fetch(response)
	}
	end(t.resultOf(response, err))
	if err != nil {
		return nil, err
	}
	t.learn(ctx, target, response.StatusCode, body)
	return response, nil
}

// read sends a read, which is not counted. But a controller that may not read what it is about to
// write lacks a permission, too.
func (s *seen) read(request *http.Request, target target) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	var body []byte
	if response.StatusCode == http.StatusForbidden {
		if body, err = Fetch(response); err != nil {
			return nil, err
		}
	}
	s.transport.learn(request.Context(), target, response.StatusCode, body)
	return response, nil
}

// Fetch reads the body of a response into memory, as clients do anyway, and makes it readable
// again.
func Fetch(response *http.Response) (body []byte, err error) {
	body, err = io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// statuses decodes error responses of the API server in any encoding.
var statuses = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// learn updates the missing permissions from the response to a request.
func (t *Transport) learn(ctx context.Context, target target, code int, body []byte) {
	switch {
	case code/100 == 2 && t.denials.allow(target, time.Now()):
		target.logger(ctx).Info("Permission is granted again")
	case code == http.StatusForbidden:
		object, _, err := statuses.Decode(body, nil, nil)
		status, ok := object.(*metav1.Status)
		if err == nil && ok && isMissingPermission(target, *status) && t.denials.deny(target, time.Now()) {
			target.logger(ctx).Error(errors.New(status.Message), "Permission is missing, retrying with backoff")
		}
	}
}

func (t target) logger(ctx context.Context) klog.Logger {
	return klog.LoggerWithValues(klog.FromContext(ctx), "verb", t.Verb, "resource", t.Resource, "namespace", t.namespace)
}

func (t *Transport) resultOf(response *http.Response, err error) Result {
	switch {
	case err != nil && slices.ContainsFunc(t.refusals, func(refusal error) bool { return errors.Is(err, refusal) }):
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

// begin records the start of a write. The returned function records its result.
func (t *Transport) begin(ctx context.Context, write Write) (end func(Result)) {
	record := reconcile.RecordWrite(ctx, write.Verb, write.Resource)
	return func(result Result) {
		t.metrics.count(t.controller, write.Verb, write.Resource, result)
		if t.dryRun && result == ResultWritten {
			record("planned")
			return
		}
		record(string(result))
	}
}
