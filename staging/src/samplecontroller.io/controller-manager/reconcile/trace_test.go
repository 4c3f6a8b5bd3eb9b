// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"
)

// attributesOf returns the attributes of a span as text.
func attributesOf(span sdktrace.ReadOnlySpan) map[string]string {
	attributes := map[string]string{}
	for _, a := range span.Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	return attributes
}

func TestSpanOfSync(t *testing.T) {
	for name, test := range map[string]struct {
		requeueAfter time.Duration
		err          error
		want         map[string]string
		status       sdktrace.Status
	}{
		"success":  {want: map[string]string{"result": "success"}},
		"requeued": {requeueAfter: time.Hour, want: map[string]string{"result": "requeued", "requeue": "1h0m0s"}},
		"error": {err: errBroken, want: map[string]string{"result": "error", "requeue": "5ms"},
			status: sdktrace.Status{Code: codes.Error, Description: "error"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				recorder := tracetest.NewSpanRecorder()
				tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
				hold, inSync := make(chan struct{}), trace.SpanContext{}
				l := New(loopName, func(ctx context.Context, _ cache.ObjectName) (time.Duration, error) {
					<-hold
					inSync = trace.SpanContextFromContext(ctx)
					return test.requeueAfter, test.err
				}, WithTracer(tracer), WithQueue("test-queue"))
				WatchSelf(l, b.informer)
				b.start(b.informer)
				stop := b.run(l, 1)
				b.server.Add(configMap("busy"))
				synctest.Wait() // the only worker syncs it
				changed := time.Now()
				b.server.Add(configMap("foo"))
				time.Sleep(time.Minute)
				hold <- struct{}{}
				synctest.Wait()
				hold <- struct{}{}
				synctest.Wait()
				span := recorder.Ended()[1]
				close(hold)
				if err := stop(); err != nil {
					t.Errorf("Run: %v", err)
				}
				maps.Copy(test.want, map[string]string{"controller": loopName, "queue": "test-queue", "namespace": "default",
					"name": "foo", "trigger": "*v1.ConfigMap added"})
				if diff := cmp.Diff(test.want, attributesOf(span)); diff != "" {
					t.Errorf("attributes (-want +got):\n%s", diff)
				}
				if !span.StartTime().Equal(changed) || span.EndTime().Sub(changed) != time.Minute {
					t.Errorf("the span lasts from %v to %v, want from the event at %v for a minute", span.StartTime(), span.EndTime(), changed)
				}
				if events := span.Events(); len(events) != 1 || !events[0].Time.Equal(changed.Add(time.Minute)) {
					t.Errorf("events %v, want when a worker took the key, and no error", events)
				}
				if span.Status() != test.status {
					t.Errorf("status %v, want %v", span.Status(), test.status)
				}
				if inSync.SpanID() != span.SpanContext().SpanID() && test.err == nil {
					t.Error("the sync has no span in its context")
				}
			})
		})
	}
}

func TestNoTracerAllocatesNothing(t *testing.T) {
	l := New(loopName, nil)
	ctx, key, now := t.Context(), cache.NewObjectName("default", fmt.Sprint("foo-", t.Name())), time.Now()
	if allocations := testing.AllocsPerRun(100, func() {
		_, span := l.startSpan(ctx, key, triggerStart, now, now)
		endSpan(span, ResultRequeued, time.Minute)
	}); allocations != 0 {
		t.Errorf("%v allocations for a sync without a tracer, want none", allocations)
	}
}

// TestSpanOfRetry: a retry was not in the queue since the event, whose sync failed.
func TestSpanOfRetry(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		recorder := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
		fail := func(context.Context, cache.ObjectName) (time.Duration, error) { return 0, errBroken }
		l := New(loopName, fail, WithTracer(tracer))
		WatchSelf(l, b.informer)
		b.start(b.informer)
		stop := b.run(l, 1)
		b.server.Add(configMap("foo"))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		spans := recorder.Ended()
		if len(spans) < 5 {
			t.Fatalf("%d spans in a minute, want some retries", len(spans))
		}
		for _, span := range spans[1:] {
			if taken := span.Events()[0].Time; !span.StartTime().Equal(taken) {
				t.Errorf("the span of a retry starts at %v, want when a worker took the key at %v", span.StartTime(), taken)
			}
		}
	})
}
