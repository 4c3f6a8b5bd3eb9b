// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"
)

// WithTracer makes the loop record a span for each sync. It starts with the first event that has enqueued the
// key since the last sync, so that it shows the time in the queue, too. Without one, as for a retry, it starts
// with the sync. Requests of the sync are its children if their client is traced. Attributes are the controller,
// queue, namespace, name, trigger, result and requeue, the delay before the next sync. No error is
// recorded, because its text may quote an object.
func WithTracer(tracer trace.Tracer) Option {
	return func(l *Loop) { l.tracer = tracer }
}

// startSpan starts the span of a sync that has begun. enqueued is when something enqueued the key, or zero.
// Without a tracer, it returns ctx and nil.
func (l *Loop) startSpan(ctx context.Context, key cache.ObjectName, trigger string, enqueued,
	began time.Time) (context.Context, trace.Span) {
	if l.tracer == nil {
		return ctx, nil
	}
	start := began
	if !enqueued.IsZero() {
		start = enqueued
	}
	ctx, span := l.tracer.Start(ctx, "Sync", trace.WithTimestamp(start), trace.WithAttributes(
		attribute.String("controller", l.name), attribute.String("queue", l.queue),
		attribute.String("namespace", key.Namespace), attribute.String("name", key.Name),
		attribute.String("trigger", trigger)))
	span.AddEvent("Worker takes the key", trace.WithTimestamp(began))
	return ctx, span
}

// endSpan ends a span that startSpan returned. after is the delay before the next sync; 0 means none.
func endSpan(span trace.Span, result Result, after time.Duration) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.String("result", string(result)))
	if after > 0 {
		span.SetAttributes(attribute.String("requeue", after.String()))
	}
	if result.failed() {
		span.SetStatus(codes.Error, string(result))
	}
	span.End()
}
