// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/version"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/leadership"
	"samplecontroller.io/controller-manager/lenient"
	"samplecontroller.io/controller-manager/writes"

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
	// gate lets what controllers write pass while the process leads.
	gate *leadership.Gate
	// transports see what controllers write.
	transports *transports
}

func newClients(c *config.CompletedConfig, gate *leadership.Gate) clients {
	return clients{c, gate, &transports{byController: map[string]*writes.Transport{}}}
}

// kubeClient returns the client with which a controller writes built-in resources.
func (c clients) kubeClient(controller string) (kubernetes.Interface, error) {
	return c.kube(c.gated(controller))
}

func (c clients) kube(config *restclient.Config) (kubernetes.Interface, error) {
	config.ContentType = c.ContentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	return client, nil
}

// metadata returns the client of informers of metadata.
func (c clients) metadata(name string) (metadata.Interface, error) {
	client, err := metadata.NewForConfig(c.rest(name, noTimeout))
	if err != nil {
		return nil, fmt.Errorf("making metadata client of %s: %w", name, err)
	}
	return client, nil
}

// fooClient returns the client of Foos.
func fooClient(config *restclient.Config) (samplev1alpha1client.FoosGetter, error) {
	return ours(config, samplev1alpha1.SchemeGroupVersion, samplev1alpha1client.New)
}

// icecreamClient returns the client of Icecreams.
func icecreamClient(config *restclient.Config) (icecreamv1alpha1client.IcecreamsGetter, error) {
	return ours(config, icecreamv1alpha1.SchemeGroupVersion, icecreamv1alpha1client.New)
}

// ours returns the client of a version of our API. To it an object that cannot be decoded is
// a stand-in: see package lenient.
func ours[C any](config *restclient.Config, version schema.GroupVersion, newClient func(restclient.Interface) C) (client C, err error) {
	rest, err := lenient.RESTClientFor(config, version, samplescheme.Scheme)
	if err != nil {
		return client, fmt.Errorf("making client %s: %w", config.UserAgent, err)
	}
	return newClient(rest), nil
}

// gated returns how a controller reaches the API server: while the process leads.
// Reads, too, must end in time, or a sync might hang.
func (c clients) gated(controller string) *restclient.Config {
	config := c.rest(controller, c.LeaderElection.WriteTimeout)
	config.Wrap(c.gate.Wrap)
	config.Wrap(c.writesOf(controller).Wrap) // outside of the gate: it sees what that refuses
	return config
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
