// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/preflight"
)

// namespaceInterval is how often a namespace that does not exist is tried again.
const namespaceInterval = time.Minute

// watchNamespace logs while the only namespace to serve does not exist, as after a typing error:
// the process would look healthy and do nothing. Call stop at the end.
func watchNamespace(ctx context.Context, config *restclient.Config, namespace string) (stop func(), err error) {
	if namespace == "" {
		return func() {}, nil
	}
	config.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { logMissingNamespace(ctx, client, namespace) })
	return func() { cancel(); running.Wait() }, nil
}

// logMissingNamespace returns once the namespace exists, or the credentials do not permit to
// know that.
func logMissingNamespace(ctx context.Context, client kubernetes.Interface, namespace string) {
	logger := klog.FromContext(ctx)
	missing := false
	for {
		err := preflight.TryNamespace(ctx, client, namespace)
		switch {
		case err == nil && missing:
			logger.Info("Namespace to serve exists now", "namespace", namespace)
			return
		case err == nil || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err): // from a webhook without dry runs
			return
		case apierrors.IsNotFound(err):
			missing = true
			logger.Error(nil, "Namespace to serve does not exist: create it, or correct --namespace", "namespace", namespace)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(namespaceInterval):
		}
	}
}
