// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// TracingOptions says where to send spans.
type TracingOptions struct {
	// ConfigFile is the path of the tracing configuration. If empty, there are no spans.
	ConfigFile string
}

func (o *TracingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "tracing-config-file", o.ConfigFile, "File with the configuration of OpenTelemetry tracing: a "+
		"TracingConfiguration of apiserver.config.k8s.io/v1, as for kube-apiserver. Without samplingRatePerMillion, nothing is traced. "+
		"If empty, tracing is off.")
}

// config reads the file. It returns nil if tracing is off.
func (o *TracingOptions) config() (*tracingapi.TracingConfiguration, error) {
	if o.ConfigFile == "" {
		return nil, nil
	}
	config, err := genericoptions.ReadTracingConfiguration(o.ConfigFile)
	if err == nil {
		err = tracingapi.ValidateTracingConfiguration(config, utilfeature.DefaultFeatureGate, nil).ToAggregate()
	}
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %s: %w", o.ConfigFile, err)
	}
	return config, nil
}
