// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"samplecontroller.io/controller-manager/internal/leadership"
)

// TestSpansOfRequests sends a write that the gate refuses, and then one that the API server answers.
func TestSpansOfRequests(t *testing.T) {
	var parent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parent = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	recorder := tracetest.NewSpanRecorder()
	p := newProcess(t, server.URL)
	p.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	p.Gate = leadership.NewGate(time.Minute)
	c := p.context(Descriptor{Name: "a-controller"}, nil)
	client, err := corev1client.NewForConfig(c.ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, sync := p.Tracing.Tracer("test").Start(t.Context(), "Sync")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"password": []byte("hunter2")}}
	create := func() {
		if _, err := client.Secrets("team").Create(ctx, secret, metav1.CreateOptions{}); err == nil {
			t.Error("Create: no error")
		}
	}
	create() // this process does not lead
	if got := recorder.Ended(); len(got) != 0 {
		t.Errorf("a refused write has the span %v, want none", got)
	}
	leading, cancel := context.WithCancel(t.Context())
	if err := leadership.RunWithoutElection(leading, p.Gate, func(*leadership.Term) error {
		defer cancel()
		create()
		return nil
	}); err != nil {
		t.Error(err)
	}
	spans := recorder.Ended()
	if len(spans) != 1 || spans[0].Parent().SpanID() != sync.SpanContext().SpanID() {
		t.Fatalf("spans %v, want one child of the sync", spans)
	}
	if id := spans[0].SpanContext().SpanID().String(); !strings.Contains(parent, id) {
		t.Errorf("the API server got the parent %q, want %s", parent, id)
	}
	for _, a := range spans[0].Attributes() {
		if strings.Contains(a.Value.String(), "hunter2") || strings.Contains(a.Value.String(), "aHVudGVyMg") {
			t.Errorf("attribute %s quotes the object: %s", a.Key, a.Value.String())
		}
	}
}
