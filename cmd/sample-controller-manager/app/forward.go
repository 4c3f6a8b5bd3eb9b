// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
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
	lease, err := client.CoordinationV1().Leases(o.namespace).Get(ctx, options.ComponentName, metav1.GetOptions{})
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

// forward forwards a free port of this machine to the secure port of a Pod, until stop
// is called.
func forward(ctx context.Context, config *restclient.Config, namespace, pod string) (address string, stop func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", nil, err
	}
	target := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialer(target, config)
	if err != nil {
		return "", nil, err
	}
	// As kubectl does.
	dialer := portforward.NewFallbackDialer(websocket, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	stopped, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", options.DefaultPort)}, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	stop = func() {
		close(stopped)
		<-ended
	}
	select {
	case <-ready:
	case err := <-ended:
		return "", nil, err
	case <-ctx.Done():
		stop()
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), stop, nil
}
