// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collector receives spans.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string

	mutex sync.Mutex
	all   []span
}

// span is a span with the attributes of its process.
type span struct {
	*tracev1.Span
	resource map[string]string
}

func startCollector() (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the collector: %w", err)
	}
	c := &collector{address: listener.Addr().String()}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }() // ends with the process
	return c, nil
}

// Export implements the service.
func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest,
) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, ofProcess := range request.ResourceSpans {
		resource := attributes(ofProcess.Resource.GetAttributes())
		for _, ofScope := range ofProcess.ScopeSpans {
			for _, s := range ofScope.Spans {
				c.all = append(c.all, span{s, resource})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// find returns the spans of a service that match.
func (c *collector) find(service string, match func(span) bool) (found []span) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, s := range c.all {
		if s.resource["service.name"] == service && match(s) {
			found = append(found, s)
		}
	}
	return found
}

func attributes(list []*commonv1.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

func (s span) attributes() map[string]string { return attributes(s.Attributes) }

// isChildOf reports whether a span has this parent.
func (s span) isChildOf(parent span) bool { return slices.Equal(s.ParentSpanId, parent.SpanId) }

// linksTo reports whether a span of another trace links to this one.
func (s span) linksTo(other span) bool {
	return len(s.ParentSpanId) == 0 && slices.ContainsFunc(s.Links, func(l *tracev1.Span_Link) bool {
		return slices.Equal(l.SpanId, other.SpanId) && slices.Equal(l.TraceId, other.TraceId)
	})
}
