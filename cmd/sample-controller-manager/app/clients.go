// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime"
	"time"

	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/version"

	sampleclientset "samplecontroller.io/client-go/clientset/versioned"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/config"
	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app/options"
)

const (
	// noTimeout is for clients that watch.
	noTimeout time.Duration = 0
	// requestTimeout is for clients that neither watch nor write for a controller.
	requestTimeout = 10 * time.Second
)

// clients makes API clients, each with a rate limit of its own and the name of
// whom it serves in its user agent, by which the audit log tells them apart.
type clients struct {
	*config.CompletedConfig
}

// kubeClient returns the client with which a controller writes built-in resources.
func (c clients) kubeClient(controller string) (kubernetes.Interface, error) {
	return c.kube(controller, c.WriteTimeout)
}

// sampleClient returns the client with which a controller writes our resources.
func (c clients) sampleClient(controller string) (sampleclientset.Interface, error) {
	return c.sample(controller, c.WriteTimeout)
}

func (c clients) kube(name string, timeout time.Duration) (kubernetes.Interface, error) {
	config := c.rest(name, timeout)
	config.ContentType = c.ContentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client of %s: %w", name, err)
	}
	return client, nil
}

// sample leaves the content type as it is generated: custom resources are JSON.
func (c clients) sample(name string, timeout time.Duration) (sampleclientset.Interface, error) {
	client, err := sampleclientset.NewForConfig(c.rest(name, timeout))
	if err != nil {
		return nil, fmt.Errorf("making client of %s: %w", name, err)
	}
	return client, nil
}

func (c clients) rest(name string, timeout time.Duration) *restclient.Config {
	config := restclient.CopyConfig(c.Kubeconfig)
	config.UserAgent = userAgent(name)
	config.Timeout = timeout
	return config
}

// userAgent has the form that client-go gives it, with the daemon's name first
// whatever its file is called.
func userAgent(name string) string {
	v := version.Get()
	return fmt.Sprintf("%s/%s (%s/%s) %.7s/%s", options.ComponentName, v.GitVersion, runtime.GOOS, runtime.GOARCH, v.GitCommit, name)
}

func eventSink(client kubernetes.Interface) record.EventSink {
	return &corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")}
}
