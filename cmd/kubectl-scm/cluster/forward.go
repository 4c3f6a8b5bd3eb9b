// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// forwarding forwards a free local port to the secure port of a Pod until stop is called.
type forwarding struct {
	address string
	stop    func()
	failure *failure
}

func (c *Cluster) forward(ctx context.Context, pod string) (*forwarding, error) {
	target := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.options.DaemonNamespace).Name(pod).
		SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerWithLogger(klog.FromContext(ctx), target, c.config)
	if err != nil {
		return nil, err
	}
	// The same fallback as kubectl.
	dialer := portforward.NewFallbackDialer(websocket,
		spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	failure, ready, ended := &failure{}, make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.New(failure)))
	forwarder, err := portforward.NewOnAddressesWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)},
		ready, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	stop := func() {
		cancel()
		<-ended
	}
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, err
	case <-ctx.Done():
		cancel() // the forwarder checks this only once it is connected, which may be never
		return nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return nil, err
	}
	return &forwarding{fmt.Sprintf("127.0.0.1:%d", ports[0].Local), stop, failure}, nil
}

// failure is a log sink that collects the errors of a port-forward: the cause of a failed
// connection is only logged. What follows from it may be logged before or after it.
type failure struct {
	mu     sync.Mutex
	logged []string
}

// explain adds what is known about a failed port-forward to err.
func (f *failure) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || len(f.logged) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(f.logged, "; "))
}

func (f *failure) Error(err error, msg string, _ ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logged = append(f.logged, fmt.Sprintf("%s: %v", msg, err))
}
func (*failure) Init(logr.RuntimeInfo)            {}
func (*failure) Enabled(int) bool                 { return false }
func (*failure) Info(int, string, ...any)         {}
func (f *failure) WithValues(...any) logr.LogSink { return f }
func (f *failure) WithName(string) logr.LogSink   { return f }
