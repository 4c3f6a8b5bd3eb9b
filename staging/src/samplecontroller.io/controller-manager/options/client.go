// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"fmt"
	"math"

	"github.com/spf13/pflag"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfig "k8s.io/component-base/config"

	"samplecontroller.io/controller-manager/internal/connection"
)

// ClientOptions say how to reach the API server.
type ClientOptions struct {
	// Connection holds --kubeconfig and the limits of clients.
	Connection componentbaseconfig.ClientConnectionConfiguration
	// Master overrides the address in the kubeconfig.
	Master string
	// Config is used instead of the kubeconfig and Master if it is set, for tests.
	Config *restclient.Config
}

func newClientOptions() *ClientOptions {
	return &ClientOptions{
		Connection: componentbaseconfig.ClientConnectionConfiguration{
			ContentType: "application/vnd.kubernetes.protobuf",
			QPS:         -1,
			Burst:       30,
		},
	}
}

// addAddressFlags adds the flags that say where the API server is.
func (o *ClientOptions) addAddressFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Connection.Kubeconfig, "kubeconfig", o.Connection.Kubeconfig,
		"Path to kubeconfig file with authorization and master location information. Empty: the credentials that a Pod is given.")
	fs.StringVar(&o.Master, "master", o.Master, "The address of the Kubernetes API server (overrides any value in kubeconfig).")
}

// addLimitFlags adds the flags that say how, and how fast, to talk to it.
func (o *ClientOptions) addLimitFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Connection.ContentType, "kube-api-content-type", o.Connection.ContentType,
		"Content type of requests for built-in resources sent to apiserver. Custom resources are always sent as JSON.")
	fs.Float32Var(&o.Connection.QPS, "kube-api-qps", o.Connection.QPS,
		"QPS to use while talking with kubernetes apiserver, for each controller. -1 means no limit: the API server's priority and fairness decides.")
	fs.Int32Var(&o.Connection.Burst, "kube-api-burst", o.Connection.Burst, "Burst to use while talking with kubernetes apiserver, where --kube-api-qps limits it.")
}

func (o *ClientOptions) validate() []error {
	var errs []error
	if qps := float64(o.Connection.QPS); math.IsNaN(qps) || math.IsInf(qps, 0) {
		errs = append(errs, fmt.Errorf("--kube-api-qps: %v is no number of requests; write -1 for no limit", qps))
	}
	if o.Connection.QPS == 0 {
		errs = append(errs, fmt.Errorf("--kube-api-qps: must not be 0; write -1 for no limit"))
	}
	if o.Connection.QPS > 0 && o.Connection.Burst < 1 {
		errs = append(errs, fmt.Errorf("--kube-api-burst: %d is too small, must be at least 1 where --kube-api-qps is set", o.Connection.Burst))
	}
	switch o.Connection.ContentType {
	case "application/vnd.kubernetes.protobuf", "application/json":
	default:
		errs = append(errs, fmt.Errorf("--kube-api-content-type: %q is not known, must be application/vnd.kubernetes.protobuf or application/json", o.Connection.ContentType))
	}
	return errs
}

// config returns how to reach the API server.
func (o *ClientOptions) config() (*restclient.Config, error) {
	if o.Config != nil {
		return o.limited(restclient.CopyConfig(o.Config)), nil
	}
	config, err := clientcmd.BuildConfigFromFlags(o.Master, o.Connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	// What is wrong with the address or with the files that are named would else come up
	// when a client is made, without the name of a flag.
	if _, _, err := restclient.DefaultServerUrlFor(config); err != nil {
		flag := "--kubeconfig"
		if o.Master != "" {
			flag = "--master"
		}
		return nil, fmt.Errorf("%s: %q: %w", flag, cmp.Or(o.Master, config.Host), err)
	}
	if _, err := restclient.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	if err := connection.FollowTokenFile(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return o.limited(config), nil
}

// limited returns the config with how, and how fast, to talk to the API server.
func (o *ClientOptions) limited(config *restclient.Config) *restclient.Config {
	// Responses are small and the API server's CPU is dearer than the network.
	config.DisableCompression = true
	// Warnings are for people who write by hand, and may quote what is written.
	config.WarningHandlerWithContext = restclient.NoWarnings{}
	config.QPS = o.Connection.QPS
	config.Burst = int(o.Connection.Burst)
	return config
}
