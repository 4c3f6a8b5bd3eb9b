// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Manifests is what is in manifests/monitoring.
type Manifests struct {
	Alerts    Alerts
	Dashboard Dashboard
	Endpoint  Endpoint
}

// Alerts is what a file of rules holds.
type Alerts struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []Alert `json:"rules"`
	} `json:"groups"`
}

// Alert is one rule.
type Alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// All returns the alerts of all groups. Changing them changes the groups'.
func (a Alerts) All() []*Alert {
	var all []*Alert
	for _, group := range a.Groups {
		for i := range group.Rules {
			all = append(all, &group.Rules[i])
		}
	}
	return all
}

// Endpoint is how the ServiceMonitor has the daemon scraped.
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

// SecretKey names one value of a Secret in the daemon's namespace.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Parse takes manifests apart, as kustomize prints them. A field of what it knows that it
// does not know is an error: then a test would not heed it.
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
				Selector  any
				Endpoints []Endpoint
			}
		}
		err = yaml.UnmarshalStrict(document, &monitor)
		if err == nil && len(monitor.Spec.Endpoints) != 1 {
			err = fmt.Errorf("it has %d endpoints, want 1", len(monitor.Spec.Endpoints))
		}
		if err == nil {
			m.Endpoint = monitor.Spec.Endpoints[0]
		}
	case "ConfigMap":
		for _, content := range object.Data {
			err = yaml.Unmarshal([]byte(content), &m.Dashboard)
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.Kind, object.Metadata.Name, err)
	}
	return nil
}

var selector = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\{[^}]*\}`)

// Selectors returns what a query reads: each metric with its labels. All selectors of ours
// have braces.
func Selectors(query string) []string { return selector.FindAllString(query, -1) }
