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
	Title      string
	Panels     []Panel
	Templating struct{ List []Variable }
}

// Variable is a choice at the top of a dashboard.
type Variable struct {
	Name, Type string
	Definition string // the query for its values
	AllValue   string // a regular expression that matches all
}

// Panel is a chart, or the heading of the charts below it, which has no targets.
type Panel struct {
	Title   string
	Targets []Query
}

// Query is one query of a panel.
type Query struct{ Expr, LegendFormat string }

// PromQL returns the query for Prometheus, for all namespaces and Pods. Grafana's variable for
// the window of a rate is replaced by a window of several scrapes.
func (q Query) PromQL(window time.Duration) string {
	return strings.NewReplacer("$__rate_interval", fmt.Sprintf("%ds", int(window.Seconds())), "$namespace", ".*", "$pod", ".*").Replace(q.Expr)
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
