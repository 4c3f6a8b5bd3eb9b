// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Dashboard is the part of a Grafana dashboard that tests read.
type Dashboard struct {
	Title       string
	Panels      []Panel
	Templating  struct{ List []Variable }
	Annotations struct{ List []Annotation }
}

// Query returns the first query of a panel, or that of an annotation.
func (d Dashboard) Query(title string) (Query, error) {
	for _, panel := range d.Panels {
		if panel.Title == title && len(panel.Targets) > 0 {
			return panel.Targets[0], nil
		}
	}
	for _, annotation := range d.Annotations.List {
		if annotation.Name == title {
			return annotation.Query(), nil
		}
	}
	return Query{}, fmt.Errorf("no panel or annotation %q", title)
}

// RunbookAddress is the address to which the panels link.
func (d Dashboard) RunbookAddress() string {
	for _, v := range d.Templating.List {
		if address, ok := v.Query.(string); ok && v.Name == "runbook" {
			return strings.TrimSpace(address)
		}
	}
	return ""
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Name, Type string
	Definition string // the query for its values
	Query      any    // the same; the values if Type is custom
	AllValue   string // a regular expression that matches all
}

// Panel is a chart, or the heading of the charts below it, which has no targets.
type Panel struct {
	Type, Title string
	Targets     []Query
	Links       []struct{ URL string }
	FieldConfig struct{ Defaults Field }
}

// Field is how a panel shows a value.
type Field struct {
	Mappings   []Mapping
	Thresholds struct{ Steps []Threshold }
}

// Mapping replaces values by texts and colors: by value, or as the options of its type say.
type Mapping struct{ Options map[string]any }

// Text returns the text for a value.
func (m Mapping) Text(value string) string {
	result, _ := m.Options[value].(map[string]any)
	text, _ := result["text"].(string)
	return text
}

// Threshold is a color for values from a limit on. The first has none.
type Threshold struct{ Value *float64 }

// Annotation is a query whose results are marked in all panels.
type Annotation struct {
	Name, TitleFormat, TextFormat string
	Target                        Query
}

// Query returns the query of the annotation, with its texts as the legend.
func (a Annotation) Query() Query {
	return Query{Expr: a.Target.Expr, LegendFormat: a.TitleFormat + a.TextFormat}
}

// Query is one query of a panel.
type Query struct{ Expr, LegendFormat string }

// PromQL returns the query for Prometheus, for all namespaces and Pods. Grafana's variables for
// the window of a rate and for the step are replaced by a window of several scrapes.
func (q Query) PromQL(window time.Duration) string {
	seconds := fmt.Sprintf("%ds", int(window.Seconds()))
	return strings.NewReplacer("$__rate_interval", seconds, "$__interval", seconds, "$namespace", ".*", "$pod", ".*").
		Replace(q.Expr)
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Check evaluates a query over a time range. It returns an error if there is no data, or if a
// label that the legend uses is missing.
func (q Query) Check(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) error {
	value, _, err := prometheus.QueryRange(ctx, q.PromQL(window), over)
	if err != nil {
		return fmt.Errorf("%s: %w", q.Expr, err)
	}
	found := false
	for _, stream := range value.(model.Matrix) {
		for _, match := range placeholder.FindAllStringSubmatch(q.LegendFormat, -1) {
			if stream.Metric[model.LabelName(match[1])] == "" {
				return fmt.Errorf("%s: the legend uses %s, but there is only %s", q.Expr, match[0], stream.Metric)
			}
		}
		found = found || slices.ContainsFunc(stream.Values, func(point model.SamplePair) bool {
			return !math.IsNaN(float64(point.Value)) && !math.IsInf(float64(point.Value), 0)
		})
	}
	if !found {
		return fmt.Errorf("%s: no data", q.Expr)
	}
	return nil
}

// Check evaluates all queries of the panel.
func (p Panel) Check(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) error {
	for _, query := range p.Targets {
		if err := query.Check(ctx, prometheus, window, over); err != nil {
			return fmt.Errorf("panel %q: %w", p.Title, err)
		}
	}
	return nil
}
