// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is the measurements of one trial.
type result struct {
	candidate   string
	values      []value
	loadAverage float64
}

// value is the value of a metric. Lower is better for all metrics.
type value struct {
	metric string
	value  float64
}

// report is the results of all trials under one load.
type report struct {
	load       load
	n, rounds  int
	candidates []candidate
	results    []result
}

// values returns the values of a metric and a candidate in all rounds.
func (r *report) values(metric, candidate string) (all []float64) {
	for _, result := range r.results {
		for _, v := range result.values {
			if result.candidate == candidate && v.metric == metric {
				all = append(all, v.value)
			}
		}
	}
	return all
}

// String returns the table.
func (r *report) String() string {
	var s strings.Builder
	var busy []float64
	var metrics []string
	for _, result := range r.results {
		busy = append(busy, result.loadAverage)
		for _, v := range result.values {
			if !slices.Contains(metrics, v.metric) {
				metrics = append(metrics, v.metric)
			}
		}
	}
	first := r.candidates[0].name
	fmt.Fprintf(&s, "%s: %s\n", r.load.name, fmt.Sprintf(r.load.about, r.n))
	fmt.Fprintf(&s, "median (min-max) of %d rounds, and the ratio to %s; %d CPUs, load average %s\n", r.rounds, first, runtime.NumCPU(), figure(busy))
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	for _, c := range r.candidates {
		fmt.Fprintf(w, "\t%s\t", strings.ToUpper(c.name))
	}
	fmt.Fprintln(w)
	for _, metric := range metrics {
		fmt.Fprint(w, metric)
		for _, c := range r.candidates {
			times := ""
			if ratio, ok := r.ratio(metric, c.name, first); ok && c.name != first {
				times = digits(ratio) + "x"
			}
			fmt.Fprintf(w, "\t%s\t%s", figure(r.values(metric, c.name)), times)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	return s.String()
}

// ratio returns the ratio of two medians, or false if there is none.
func (r *report) ratio(metric, candidate, of string) (float64, bool) {
	a, b := r.values(metric, candidate), r.values(metric, of)
	if len(a) == 0 || len(b) == 0 || median(b) <= 0 {
		return 0, false
	}
	return median(a) / median(b), true
}

// figure formats the values of all rounds.
func figure(all []float64) string {
	if len(all) == 0 {
		return "-"
	}
	least, most := slices.Min(all), slices.Max(all)
	if least == most {
		return digits(least)
	}
	return fmt.Sprintf("%s (%s-%s)", digits(median(all)), digits(least), digits(most))
}

func digits(v float64) string {
	switch {
	case v == math.Trunc(v), v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func median[T cmp.Ordered](all []T) T { return percentile(all, 50) }

// percentile returns the lowest value that is not below this percentage of the values.
func percentile[T cmp.Ordered](all []T, percent float64) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(math.Ceil(float64(len(sorted))*percent/100))-1]
}

// percentiles returns the p50 and p99 of durations in milliseconds.
func percentiles(metric string, all []time.Duration) []value {
	return []value{{metric + " p50, ms", milliseconds(percentile(all, 50))}, {metric + " p99, ms", milliseconds(percentile(all, 99))}}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(n uint64) float64 { return float64(n) / (1 << 20) }
