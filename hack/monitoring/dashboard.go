// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"math"
	"regexp"
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
	Type, Title string
	GridPos     struct{ X, Y, W, H int } // the width of all is 24
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []Query
}

// Query is what a panel shows.
type Query struct{ Expr, LegendFormat string }

// PromQL is the query as Prometheus understands it: Grafana would replace its variable by
// a window that holds some scrapes.
func (q Query) PromQL(window time.Duration) string {
	return strings.ReplaceAll(q.Expr, "$__rate_interval", fmt.Sprintf("%ds", int(window.Seconds())))
}

// Line is a named course of values.
type Line struct {
	Name   string
	Points []model.SamplePair
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Lines evaluates a query over a time. Nothing found is an error, and so is a label that
// is wanted for the legend and not there.
func (q Query) Lines(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) ([]Line, error) {
	value, _, err := prometheus.QueryRange(ctx, q.PromQL(window), over)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Expr, err)
	}
	var lines []Line
	for _, stream := range value.(model.Matrix) {
		var missing []string
		line := Line{Name: placeholder.ReplaceAllStringFunc(q.LegendFormat, func(p string) string {
			label := model.LabelName(strings.Trim(p, "{}"))
			if stream.Metric[label] == "" {
				missing = append(missing, p)
			}
			return string(stream.Metric[label])
		})}
		if len(missing) > 0 {
			return nil, fmt.Errorf("%s: the legend wants %v, and there is only %s", q.Expr, missing, stream.Metric)
		}
		for _, point := range stream.Values {
			if !math.IsNaN(float64(point.Value)) && !math.IsInf(float64(point.Value), 0) {
				line.Points = append(line.Points, point)
			}
		}
		if len(line.Points) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: there are no data", q.Expr)
	}
	return lines, nil
}

// Lines evaluates all that the panel shows.
func (p Panel) Lines(ctx context.Context, prometheus promv1.API, window time.Duration, over promv1.Range) ([]Line, error) {
	var all []Line
	for _, query := range p.Targets {
		lines, err := query.Lines(ctx, prometheus, window, over)
		if err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.Title, err)
		}
		all = append(all, lines...)
	}
	return all, nil
}
