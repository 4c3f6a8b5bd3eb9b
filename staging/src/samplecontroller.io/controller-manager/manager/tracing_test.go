// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"
)

// TestHangingCollectorDelaysNothing has a collector that accepts connections and never answers.
func TestHangingCollectorDelaysNothing(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
	// So that the goroutines of the exporter end soon after the test.
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "2500")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := &tracingapi.TracingConfiguration{
		Endpoint: ptr.To(listener.Addr().String()), SamplingRatePerMillion: ptr.To[int32](1_000_000),
	}
	before := goleak.IgnoreCurrent()
	began := time.Now()
	provider, stop, err := Program{Name: "test"}.startTracing(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	tracer := provider.Tracer("test")
	const spans = 500 // more than wait in memory
	for range spans {
		_, span := tracer.Start(t.Context(), "Sync")
		span.End()
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the start and %d spans took %v", spans, took)
	}
	began = time.Now()
	stop()
	if took := time.Since(began); took < spansTimeout || took > 2*spansTimeout {
		t.Errorf("the end took %v, want %v", took, spansTimeout)
	}
	waitUntilExporterEnds(t, before)
}

// waitUntilExporterEnds waits for the goroutines of the exporter, which end after its timeout.
func waitUntilExporterEnds(t *testing.T, before goleak.Option) {
	t.Helper()
	for range 20 {
		if goleak.Find(before) == nil { // retries for a second
			return
		}
	}
	t.Error("the exporter does not end")
}

func TestTracingIsOffByDefault(t *testing.T) {
	provider, stop, err := Program{Name: "test"}.startTracing(t.Context(), nil)
	if provider != nil || err != nil {
		t.Errorf("provider %v, error %v, want none", provider, err)
	}
	stop()
}
