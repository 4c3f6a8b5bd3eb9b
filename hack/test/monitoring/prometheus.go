// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// Job is the job label that prometheus-operator derives from the name of the Service.
const Job = "sample-controller-manager"

// Target is a replica to scrape. If Namespace is empty, it is that of the manifests.
type Target struct{ Address, Pod, Namespace string }

// Config is the input of a Prometheus configuration.
type Config struct {
	Manifests *Manifests
	Targets   []Target
	// Interval replaces that of the ServiceMonitor.
	Interval time.Duration
	// Secret returns the value of a key of a Secret.
	Secret func(SecretKey) ([]byte, error)
}

// Write writes the configuration into a directory and returns its path. It is equivalent to
// what prometheus-operator generates from the manifests, except that the targets are static.
func (c Config) Write(dir string) (path string, err error) {
	e := c.Manifests.Endpoint
	scrape := map[string]any{
		"job_name":     Job,
		"scheme":       e.Scheme,
		"metrics_path": e.Path,
	}
	if scrape["authorization"], err = c.file(dir, "credentials_file", e.Authorization.Credentials, nil); err != nil {
		return "", err
	}
	if scrape["tls_config"], err = c.file(dir, "ca_file", e.TLSConfig.CA.Secret, map[string]any{
		"insecure_skip_verify": e.TLSConfig.InsecureSkipVerify, "server_name": e.TLSConfig.ServerName,
	}); err != nil {
		return "", err
	}
	var targets []any
	for _, t := range c.Targets {
		targets = append(targets, map[string]any{"targets": []string{t.Address}, "labels": map[string]string{
			"namespace": cmp.Or(t.Namespace, Job), "service": Job, "container": Job, "endpoint": e.Port, "pod": t.Pod,
		}})
	}
	scrape["static_configs"] = targets
	if err := c.WriteAlerts(dir); err != nil {
		return "", err
	}
	interval := fmt.Sprintf("%dms", c.Interval.Milliseconds())
	return write(dir, "prometheus.yaml", map[string]any{
		"global":         map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files":     []string{"alerts.yaml"},
		"scrape_configs": []any{scrape},
	})
}

// WriteAlerts rewrites only the alerts, for a running Prometheus, which must then reload its
// configuration.
func (c Config) WriteAlerts(dir string) error {
	_, err := write(dir, "alerts.yaml", c.Manifests.Alerts)
	return err
}

// file adds the value of a Secret, as a file path, to the settings. A Secret without name is
// not set.
func (c Config) file(dir, setting string, key SecretKey, settings map[string]any) (map[string]any, error) {
	if settings == nil {
		settings = map[string]any{}
	}
	if key.Name == "" {
		return settings, nil
	}
	value, err := c.Secret(key)
	if err != nil {
		return nil, err
	}
	settings[setting] = setting
	return settings, os.WriteFile(filepath.Join(dir, setting), value, 0o600)
}

func write(dir, name string, content any) (path string, err error) {
	encoded, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", name, err)
	}
	path = filepath.Join(dir, name)
	return path, os.WriteFile(path, encoded, 0o600)
}
