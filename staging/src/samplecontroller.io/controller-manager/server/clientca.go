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
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// The ConfigMap in which a cluster publishes the authorities that sign client certificates.
const (
	clientCANamespace = "kube-system"
	clientCAName      = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
)

const (
	// clientCARetry is how often it is tried to read the ConfigMap until that works.
	clientCARetry = 5 * time.Second
	// clientCATimeout is how long one try may take.
	clientCATimeout = 10 * time.Second
)

// clientCAs are the authorities that sign client certificates, as the cluster publishes
// them. Until they can be read no client certificate is accepted: nothing else needs them,
// so the server does not wait for them.
//
// The ConfigMap has authorities for front proxies, too. They are left alone: no front proxy
// authenticates callers for a controller manager.
type clientCAs struct {
	*dynamiccertificates.ConfigMapCAController
	read func(ctx context.Context) error
}

var _ dynamiccertificates.ControllerRunner = clientCAs{}

// newClientCAs returns those of the cluster of kubeconfig, or if that is empty, of the one
// that the process runs in; nil if there is none. It is an error if they are required and
// cannot be read.
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
	// It has goroutines, which end with its Run.
	controller, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", clientCANamespace, clientCAName, clientCAKey, client)
	if err != nil {
		return nil, err
	}
	return &clientCAs{controller, read}, nil
}

// Run keeps the authorities up to date until ctx ends. It begins once they can be read,
// and logs each reason why they cannot once.
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
			logger.Error(err, "Accepting no client certificates until their authorities can be read")
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
