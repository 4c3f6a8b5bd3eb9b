// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds has the clients and informers that the controllers share: those of Foos and
// Icecreams, and of the Deployments, ReplicaSets and Pods below them.
package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"

	icecreamv1alpha1 "samplecontroller.io/api/icecream/v1alpha1"
	samplev1alpha1 "samplecontroller.io/api/samplecontroller/v1alpha1"
	samplescheme "samplecontroller.io/client-go/clientset/versioned/scheme"
	icecreamv1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/icecream/v1alpha1"
	samplev1alpha1client "samplecontroller.io/client-go/clientset/versioned/typed/samplecontroller/v1alpha1"
	"samplecontroller.io/controller-manager/tolerant"
)

// Names of the controllers of Foos and of Icecreams. Without its own controller, the
// status-aggregator-controller does not read a kind.
const (
	FooController      = "foo-controller"
	IcecreamController = "icecream-controller"
)

// FooClient returns the client of Foos. It returns a placeholder for a Foo that cannot be
// decoded: see package tolerant.
func FooClient(config *restclient.Config) (samplev1alpha1client.FoosGetter, error) {
	return clientOf(config, samplev1alpha1.SchemeGroupVersion, samplev1alpha1client.New)
}

// IcecreamClient is like [FooClient] for Icecreams.
func IcecreamClient(config *restclient.Config) (icecreamv1alpha1client.IcecreamsGetter, error) {
	return clientOf(config, icecreamv1alpha1.SchemeGroupVersion, icecreamv1alpha1client.New)
}

func clientOf[C any](config *restclient.Config, version schema.GroupVersion, newClient func(restclient.Interface) C) (client C, err error) {
	rest, err := tolerant.RESTClientFor(config, version, samplescheme.Scheme)
	if err != nil {
		return client, fmt.Errorf("creating client for %v: %w", version, err)
	}
	return newClient(rest), nil
}
