// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"
	restclient "k8s.io/client-go/rest"
	componentbaseconfig "k8s.io/component-base/config"

	"samplecontroller.io/controller-manager/internal/connection"
)

// ClientOptions holds the settings of the connection to the API server.
type ClientOptions struct {
	// Connection holds --kubeconfig, the content type and the rate limits.
	Connection componentbaseconfig.ClientConnectionConfiguration
	// Master overrides the address in the kubeconfig.
	Master string
	// Config, if set, is used instead of the kubeconfig and Master. It is for tests.
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

// addAddressFlags adds the flags that locate the API server.
func (o *ClientOptions) addAddressFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Connection.Kubeconfig, "kubeconfig", o.Connection.Kubeconfig,
		"Path to kubeconfig file with authorization and master location information. If empty, the in-cluster configuration is used. $KUBECONFIG is not read.")
	fs.StringVar(&o.Master, "master", o.Master, "The address of the Kubernetes API server (overrides any value in kubeconfig).")
}

// addLimitFlags adds the flags for the content type and the rate limits.
func (o *ClientOptions) addLimitFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Connection.ContentType, "kube-api-content-type", o.Connection.ContentType,
		"Content type of requests for built-in resources sent to apiserver. Custom resources are always sent as JSON.")
	fs.Float32Var(&o.Connection.QPS, "kube-api-qps", o.Connection.QPS,
		"QPS to use while talking with kubernetes apiserver, for all requests of one controller together, and for those of all informers together. -1 means no limit: the API server's priority and fairness applies.")
	fs.Int32Var(&o.Connection.Burst, "kube-api-burst", o.Connection.Burst, "Burst to use while talking with kubernetes apiserver. Ignored if --kube-api-qps is -1.")
}

func (o *ClientOptions) validate() []error {
	var errs []error
	if qps := o.Connection.QPS; qps != -1 && !(qps > 0 && qps <= math.MaxFloat32) { // NaN is not > 0
		errs = append(errs, fmt.Errorf("--kube-api-qps: %v must be positive, or -1 for no limit", qps))
	}
	if o.Connection.Burst < 0 {
		errs = append(errs, fmt.Errorf("--kube-api-burst: %d must not be negative", o.Connection.Burst))
	} else if o.Connection.QPS > 0 && o.Connection.Burst < 1 {
		errs = append(errs, fmt.Errorf("--kube-api-burst: %d is too small, must be at least 1 if --kube-api-qps is set", o.Connection.Burst))
	}
	switch o.Connection.ContentType {
	case "application/vnd.kubernetes.protobuf", "application/json":
	default:
		errs = append(errs, fmt.Errorf("--kube-api-content-type: %q is not supported, must be application/vnd.kubernetes.protobuf or application/json", o.Connection.ContentType))
	}
	return errs
}

// config returns the client configuration for the API server.
func (o *ClientOptions) config() (*restclient.Config, error) {
	if o.Config != nil {
		return o.limited(restclient.CopyConfig(o.Config)), nil
	}
	config, err := connection.Load(o.Master, o.Connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	// Check the address and the referenced files here, while the flag to blame is known.
	// Otherwise they would fail later, when a client is made.
	address, _, err := restclient.DefaultServerUrlFor(config)
	if err == nil && address.Scheme != "https" && address.Scheme != "http" {
		err = errors.New("must begin with https://")
	}
	if err != nil {
		flag := "--kubeconfig"
		if o.Master != "" {
			flag = "--master"
		}
		return nil, fmt.Errorf("%s: %q: %w", flag, cmp.Or(o.Master, config.Host), err)
	}
	if _, err := restclient.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	connection.ExplainUnauthorized(config, o.Connection.Kubeconfig)
	if err := connection.FollowTokenFile(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return o.limited(config), nil
}

// limited returns config with the options' rate limits and the common client settings.
func (o *ClientOptions) limited(config *restclient.Config) *restclient.Config {
	// Responses are small, and the API server's CPU is scarcer than network bandwidth.
	config.DisableCompression = true
	// Warnings are meant for interactive users, and may quote the object that was sent.
	config.WarningHandlerWithContext = restclient.NoWarnings{}
	config.ContentType = o.Connection.ContentType
	config.QPS = o.Connection.QPS
	config.Burst = int(o.Connection.Burst)
	return config
}
