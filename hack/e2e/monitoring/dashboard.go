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

// Dashboard is what is read of a dashboard of Grafana.
type Dashboard struct {
	Title  string
	Panels []Panel
}

// Panel is a chart, or the heading of those below it, which has no targets.
type Panel struct {
	Title   string
	Targets []Query
}

// Query is what a panel shows.
type Query struct{ Expr, LegendFormat string }

// PromQL is the query as Prometheus understands it: Grafana would replace its variable by
// a window that holds some scrapes.
func (q Query) PromQL(window time.Duration) string {
	return strings.ReplaceAll(q.Expr, "$__rate_interval", fmt.Sprintf("%ds", int(window.Seconds())))
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Check evaluates a query over a time. Nothing found is an error, and so is a label that
// is wanted for the legend and not there.
func (q Query) Check(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) error {
	value, _, err := prometheus.QueryRange(ctx, q.PromQL(window), over)
	if err != nil {
		return fmt.Errorf("%s: %w", q.Expr, err)
	}
	found := false
	for _, stream := range value.(model.Matrix) {
		for _, match := range placeholder.FindAllStringSubmatch(q.LegendFormat, -1) {
			if stream.Metric[model.LabelName(match[1])] == "" {
				return fmt.Errorf("%s: the legend wants %s, and there is only %s", q.Expr, match[0], stream.Metric)
			}
		}
		found = found || slices.ContainsFunc(stream.Values, func(point model.SamplePair) bool {
			return !math.IsNaN(float64(point.Value)) && !math.IsInf(float64(point.Value), 0)
		})
	}
	if !found {
		return fmt.Errorf("%s: there are no data", q.Expr)
	}
	return nil
}

// Check evaluates all that the panel shows.
func (p Panel) Check(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) error {
	for _, query := range p.Targets {
		if err := query.Check(ctx, prometheus, window, over); err != nil {
			return fmt.Errorf("panel %q: %w", p.Title, err)
		}
	}
	return nil
}
