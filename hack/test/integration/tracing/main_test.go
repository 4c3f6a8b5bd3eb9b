// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/test/framework"
)

// spans are those of the daemon and of kube-apiserver.
var spans *collector

// configFile is the tracing configuration of both. All spans are recorded.
var configFile string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tracing-")
	if err == nil {
		spans, err = startCollector()
	}
	if err == nil {
		configFile = filepath.Join(dir, "tracing.yaml")
		err = os.WriteFile(configFile, configFor(spans.address), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	framework.MainOfAPIServerWith(m, map[string]string{"tracing-config-file": configFile})
}

func configFor(address string) []byte {
	return fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"+
		"endpoint: %s\nsamplingRatePerMillion: 1000000\n", address)
}
