// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
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
	*dynamiccertificates.ConfigMapCAController
	read func(ctx context.Context) error
}

var _ dynamiccertificates.ControllerRunner = clientCAs{}

// ClientCAConfigMap returns the ConfigMap with the CAs for client certificates. The name is
// empty if the options need none.
func (o *Options) ClientCAConfigMap() (namespace, name string) {
	if a := o.Authentication; a.SkipInClusterLookup || a.ClientCert != (apiserveroptions.ClientCertAuthenticationOptions{}) {
		return "", ""
	}
	return clientCANamespace, clientCAName
}

// newClientCAs returns the CAs of the cluster in kubeconfig, or of the cluster that the
// process runs in if kubeconfig is empty. It returns nil if there is no cluster. It fails if
// the CAs are required and cannot be read.
func newClientCAs(ctx context.Context, kubeconfig string, required bool) (*clientCAs, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if kubeconfig == "" {
		config, err = restclient.InClusterConfig()
		if errors.Is(err, restclient.ErrNotInCluster) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
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
	// The controller starts goroutines, which end with its Run.
	controller, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", clientCANamespace, clientCAName, clientCAKey, client)
	if err != nil {
		return nil, err
	}
	return &clientCAs{controller, read}, nil
}

// Run keeps the CAs up to date until ctx ends. Until they can be read, it retries, and logs an
// error when it changes.
func (c clientCAs) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx)
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
	if reason != "" && ctx.Err() == nil {
		logger.Info("Accepting client certificates")
	}
	c.ConfigMapCAController.Run(ctx, workers)
}
