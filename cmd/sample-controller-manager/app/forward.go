// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"
)

// podToAsk returns the Pod that leads, unless another is wanted; empty if none does.
func (o *statusOptions) podToAsk(ctx context.Context, config *restclient.Config) (string, error) {
	if o.pod != "" {
		return o.pod, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	lease, err := client.CoordinationV1().Leases(o.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for who leads: %w; name a replica by --pod or --server", err)
	}
	// The holder is <host name>_<UUID>, and the host name of a Pod is its name.
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if pod == "" {
		return "", nil
	}
	_, err = client.CoreV1().Pods(o.namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil // it runs outside of the cluster
	}
	if err != nil {
		return "", fmt.Errorf("looking for the Pod that leads: %w; name a replica by --server", err)
	}
	return pod, nil
}

// forwarding is a free port of this machine that is forwarded to the secure port of a
// Pod, until stop is called.
type forwarding struct {
	address string
	stop    func()
	failure *failure
}

func forward(ctx context.Context, config *restclient.Config, namespace, pod string) (*forwarding, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	target := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerWithLogger(klog.FromContext(ctx), target, config)
	if err != nil {
		return nil, err
	}
	// As kubectl does.
	dialer := portforward.NewFallbackDialer(websocket, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	failure, ready, ended := &failure{}, make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.New(failure)))
	forwarder, err := portforward.NewOnAddressesWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ready, io.Discard, io.Discard)
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
		cancel() // it hears of that once it is connected, which may be never
		return nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return nil, err
	}
	return &forwarding{fmt.Sprintf("127.0.0.1:%d", ports[0].Local), stop, failure}, nil
}

// failure is where a forwarding logs why a connection failed: the error that it last had.
type failure struct{ last atomic.Value }

// because returns the error with why there was nobody to answer, if that is known.
func (f *failure) because(err error) error {
	if why, ok := f.last.Load().(string); ok {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

func (f *failure) Error(err error, msg string, _ ...any) {
	f.last.Store(fmt.Sprintf("%s: %v", msg, err))
}
func (*failure) Init(logr.RuntimeInfo)            {}
func (*failure) Enabled(int) bool                 { return false }
func (*failure) Info(int, string, ...any)         {}
func (f *failure) WithValues(...any) logr.LogSink { return f }
func (f *failure) WithName(string) logr.LogSink   { return f }
