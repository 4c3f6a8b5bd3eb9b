// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	componenttracing "k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// spansTimeout is how long the end of the process waits for the collector to accept the last spans.
const spansTimeout = 2 * time.Second

// startTracing returns the provider of tracers, or nil if tracing is off. It opens no connection: spans wait
// in memory for the collector, and are dropped if they are too many. stop sends the last ones.
func (p Program) startTracing(ctx context.Context, config *tracingapi.TracingConfiguration) (_ trace.TracerProvider,
	stop func(), _ error) {
	if config == nil {
		return nil, func() {}, nil
	}
	logger := klog.FromContext(ctx)
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("starting tracing: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error(err, "Failed to send spans") }))
	// Ignore the end of ctx, so that the spans of the last syncs are still sent.
	provider, err := componenttracing.NewProvider(context.WithoutCancel(ctx), config, nil, []resource.Option{
		resource.WithAttributes(attribute.String("service.name", p.Name), attribute.String("service.instance.id", host)),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("starting tracing: %w", err)
	}
	rate := ptr.Deref(config.SamplingRatePerMillion, 0)
	logger.Info("Tracing syncs", "collector", ptr.Deref(config.Endpoint, "localhost:4317"), "samplingRatePerMillion", rate)
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spansTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Error(err, "Failed to send the last spans")
		}
	}, nil
}
