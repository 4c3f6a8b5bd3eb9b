// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

func TestTracingConfigFile(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"valid":           {head + "endpoint: otel:4317\nsamplingRatePerMillion: 1000\n", ""},
		"older version":   {"apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: otel:4317\nsamplingRatePerMillion: 1000\n", ""},
		"unknown field":   {head + "samplingRate: 3\n", `unknown field "samplingRate"`},
		"other kind":      {"apiVersion: v1\nkind: ConfigMap\n", "no kind \"ConfigMap\" is registered"},
		"negative rate":   {head + "samplingRatePerMillion: -1\n", "sampling rate must be positive"},
		"rate too high":   {head + "samplingRatePerMillion: 1000001\n", "less than or equal to one million"},
		"invalid address": {head + "endpoint: https://otel:4317\n", "unsupported scheme: https"},
		"not YAML":        {"endpoint: [", "did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tracing.yaml")
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			config, err := parse(t, "--tracing-config-file="+path).Tracing.config()
			if test.want == "" {
				if err != nil || ptr.Deref(config.Endpoint, "") != "otel:4317" || ptr.Deref(config.SamplingRatePerMillion, 0) != 1000 {
					t.Errorf("config %v, error %v", config, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "--tracing-config-file: "+path+": ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about the file with %q", err, test.want)
			}
		})
	}
}

func TestTracingIsOffByDefault(t *testing.T) {
	if config, err := parse(t).Tracing.config(); config != nil || err != nil {
		t.Errorf("config %v, error %v, want none", config, err)
	}
}

func TestMissingTracingConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, err := parse(t, "--tracing-config-file="+path).Tracing.config()
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}
