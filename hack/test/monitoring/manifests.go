// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Manifests is the content of manifests/monitoring.
type Manifests struct {
	Alerts    Alerts
	Dashboard Dashboard
	Endpoint  Endpoint
}

// Alerts is the content of a rules file.
type Alerts struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []Rule `json:"rules"`
	} `json:"groups"`
}

// Rule is an alert, or a query whose result is recorded as a series.
type Rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Rules returns the rules of all groups. Callers may change them in place.
func (a Alerts) Rules() []*Rule {
	var all []*Rule
	for _, group := range a.Groups {
		for i := range group.Rules {
			all = append(all, &group.Rules[i])
		}
	}
	return all
}

// All returns the alerts of all groups. Callers may change them in place.
func (a Alerts) All() []*Rule {
	return slices.DeleteFunc(a.Rules(), func(r *Rule) bool { return r.Alert == "" })
}

// Endpoint describes how the ServiceMonitor makes Prometheus scrape the daemon.
type Endpoint struct {
	Port          string `json:"port"`
	Scheme        string `json:"scheme"`
	Path          string `json:"path"`
	Interval      string `json:"interval"`
	ScrapeTimeout string `json:"scrapeTimeout"`
	Authorization struct {
		Credentials SecretKey `json:"credentials"`
	} `json:"authorization"`
	TLSConfig struct {
		InsecureSkipVerify bool   `json:"insecureSkipVerify"`
		ServerName         string `json:"serverName"`
		CA                 struct {
			Secret SecretKey `json:"secret"`
		} `json:"ca"`
	} `json:"tlsConfig"`
}

// SecretKey refers to one value of a Secret in the daemon's namespace.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Parse parses manifests as printed by kustomize. An unknown field in a known object is an
// error, because a test would ignore it.
func Parse(manifests string) (*Manifests, error) {
	m := &Manifests{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if err := m.add(document); err != nil {
			return nil, err
		}
	}
}

func (m *Manifests) add(document []byte) error {
	var object struct {
		Kind     string
		Metadata struct{ Name string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		return fmt.Errorf("reading manifests: %w", err)
	}
	var err error
	switch object.Kind {
	case "PrometheusRule":
		var rule struct {
			APIVersion, Kind string
			Metadata         any
			Spec             Alerts
		}
		err = yaml.UnmarshalStrict(document, &rule)
		m.Alerts = rule.Spec
	case "ServiceMonitor":
		var monitor struct {
			APIVersion, Kind string
			Metadata         any
			Spec             struct {
				JobLabel  string
				Selector  any
				Endpoints []Endpoint
			}
		}
		err = yaml.UnmarshalStrict(document, &monitor)
		if err == nil && len(monitor.Spec.Endpoints) != 1 {
			err = fmt.Errorf("has %d endpoints, want 1", len(monitor.Spec.Endpoints))
		}
		// The value of this label of the Service is the job that alerts and dashboard select.
		if err == nil && monitor.Spec.JobLabel != "app.kubernetes.io/name" {
			err = fmt.Errorf("has the jobLabel %q, want app.kubernetes.io/name", monitor.Spec.JobLabel)
		}
		if err == nil {
			m.Endpoint = monitor.Spec.Endpoints[0]
		}
	case "ConfigMap":
		for name, content := range object.Data {
			if strings.HasSuffix(name, ".json") {
				err = yaml.Unmarshal([]byte(content), &m.Dashboard)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.Kind, object.Metadata.Name, err)
	}
	return nil
}

var selector = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\{[^}]*\}`)

// Selectors returns the selectors of a query: each metric with its labels. All our selectors
// have braces, except those of recorded series.
func Selectors(query string) []string { return selector.FindAllString(query, -1) }
