// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/connection"
)

// A cluster publishes the CA bundle for client certificates in this ConfigMap.
const (
	clientCANamespace = "kube-system"
	clientCAName      = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
)

const (
	// clientCARetry is the interval between attempts to read the ConfigMap.
	clientCARetry = 5 * time.Second
	// clientCATimeout limits each attempt.
	clientCATimeout = 10 * time.Second
)

// clientCAs provides the CAs for client certificates that the cluster publishes. Until they
// can be read, no client certificate is accepted. Nothing else depends on them, so the server
// does not wait for them.
//
// The CAs for front proxies in the same ConfigMap are ignored: no front proxy authenticates
// callers for a controller manager.
type clientCAs struct {
	read func(ctx context.Context) error
	// follow makes the controller that follows the ConfigMap, and starts its goroutines.
	follow func() (*dynamiccertificates.ConfigMapCAController, error)

	mutex     sync.Mutex
	listeners []dynamiccertificates.Listener
	following *dynamiccertificates.ConfigMapCAController // nil until the ConfigMap can be read
}

var (
	_ dynamiccertificates.ControllerRunner  = &clientCAs{}
	_ dynamiccertificates.CAContentProvider = &clientCAs{}
)

// Name implements dynamiccertificates.CAContentProvider.
func (*clientCAs) Name() string { return "client-ca" }

// AddListener implements dynamiccertificates.Notifier.
func (c *clientCAs) AddListener(listener dynamiccertificates.Listener) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.listeners = append(c.listeners, listener)
}

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (c *clientCAs) CurrentCABundleContent() []byte {
	if controller := c.current(); controller != nil {
		return controller.CurrentCABundleContent()
	}
	return nil
}

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (c *clientCAs) VerifyOptions() (x509.VerifyOptions, bool) {
	if controller := c.current(); controller != nil {
		return controller.VerifyOptions()
	}
	return x509.VerifyOptions{}, false
}

func (c *clientCAs) current() *dynamiccertificates.ConfigMapCAController {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.following
}

// ClientCAConfigMap returns the ConfigMap with the CAs for client certificates. The name is
// empty if the options need none.
func (o *Options) ClientCAConfigMap() (namespace, name string) {
	if a := o.Authentication; a.SkipInClusterLookup ||
		a.ClientCert != (apiserveroptions.ClientCertAuthenticationOptions{}) {
		return "", ""
	}
	return clientCANamespace, clientCAName
}

// newClientCAs returns the CAs of the cluster in kubeconfig, or of the cluster that the
// process runs in if kubeconfig is empty. It returns nil if there is no cluster. It fails if
// the CAs are required and cannot be read.
func newClientCAs(ctx context.Context, kubeconfig, userAgent string, required bool) (*clientCAs, error) {
	if kubeconfig == "" {
		if _, err := restclient.InClusterConfig(); errors.Is(err, restclient.ErrNotInCluster) {
			return nil, nil
		}
	}
	config, err := connection.Load("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	connection.ExplainUnauthorized(config, kubeconfig)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, clientCATimeout)
		defer cancel()
		_, err := client.CoreV1().ConfigMaps(clientCANamespace).Get(ctx, clientCAName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading ConfigMap %s/%s: %w", clientCANamespace, clientCAName, err)
		}
		return nil
	}
	if required {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	return &clientCAs{read: read, follow: func() (*dynamiccertificates.ConfigMapCAController, error) {
		return dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", clientCANamespace, clientCAName, clientCAKey,
			client)
	}}, nil
}

// RunOnce implements dynamiccertificates.ControllerRunner.
func (*clientCAs) RunOnce(context.Context) error { return nil }

// Run keeps the CAs up to date until ctx ends. Until they can be read, it retries, and logs an
// error when it changes.
func (c *clientCAs) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx).WithName(c.Name())
	var reason string
	for ctx.Err() == nil {
		err := c.read(ctx)
		if err == nil || ctx.Err() != nil {
			break
		}
		if err.Error() != reason {
			reason = err.Error()
			logger.Error(err, "Rejecting client certificates until the client CA bundle can be read")
		}
		select {
		case <-time.After(clientCARetry):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return
	}
	if reason != "" {
		logger.Info("Accepting client certificates")
	}
	controller, err := c.follow()
	if err != nil {
		logger.Error(err, "Rejecting client certificates")
		return
	}
	c.mutex.Lock()
	for _, listener := range c.listeners {
		controller.AddListener(listener)
	}
	c.following = controller
	c.mutex.Unlock()
	// The library's lines about its cache do not say which one it is.
	controller.Run(klog.NewContext(ctx, logger), workers)
}
