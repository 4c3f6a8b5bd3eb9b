// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// metric is something of which less is better.
type metric struct {
	name string
	of   func(result) float64
	// on says on which loads it says something.
	on func(load) bool
}

var metrics = []metric{
	{"until all is done, s", func(r result) float64 { return r.Seconds }, hasChanges},
	{"change to Deployment p50, ms", func(r result) float64 { return 1000 * r.P50 }, manyChanges(deploymentAnswer, statusAnswer)},
	{"change to Deployment p99, ms", func(r result) float64 { return 1000 * r.P99 }, manyChanges(deploymentAnswer, statusAnswer)},
	{"creation to ready p50, ms", func(r result) float64 { return 1000 * r.P50 }, manyChanges(readyAnswer)},
	{"creation to ready p99, ms", func(r result) float64 { return 1000 * r.P99 }, manyChanges(readyAnswer)},
	{"writes a change", func(r result) float64 { return perChange(r, r.Calls.Writes) }, manyChanges(deploymentAnswer, statusAnswer, readyAnswer)},
	{"refused writes a change", func(r result) float64 { return perChange(r, r.Calls.Refused) }, manyChanges(deploymentAnswer, statusAnswer, readyAnswer)},
	{"writes", func(r result) float64 { return float64(r.Calls.Writes) }, fewChanges},
	{"refused writes", func(r result) float64 { return float64(r.Calls.Refused) }, fewChanges},
	{"GETs and LISTs", func(r result) float64 { return float64(r.Calls.Reads) }, anyLoad},
	{"own CPU, s", func(r result) float64 { return r.CPU }, anyLoad},
	{"peak memory, MiB", func(r result) float64 { return float64(r.Memory) / (1 << 20) }, anyLoad},
	{"anonymous memory, MiB", func(r result) float64 { return float64(r.Heap) / (1 << 20) }, anyLoad},
	{"API server's CPU, s", func(r result) float64 { return r.APIServerCPU }, anyLoad},
	{"etcd's CPU, s", func(r result) float64 { return r.EtcdCPU }, anyLoad},
}

func anyLoad(load) bool { return true }

func hasChanges(l load) bool { return l.changes(many) > 0 && l.every == 0 }

func fewChanges(l load) bool { return l.changes(many) < 2 }

// many is a number of Foos of which one alone is not all.
const many = 2

func manyChanges(answers ...answerOf) func(load) bool {
	return func(l load) bool { return !fewChanges(l) && slices.Contains(answers, l.answer) }
}

func perChange(r result, n int) float64 { return float64(n) / float64(max(r.Changes, 1)) }

// budget is what a metric of the daemon may be, as a multiple of another's.
type budget struct {
	metric, of string
	most       float64
}

// budgets are for the loads that are about throughput.
var budgets = map[string][]budget{
	"create": throughput, "scale": throughput, "drift": throughput, "backlog": throughput,
}

var throughput = []budget{
	{"until all is done, s", "floor", 1.15},
	{"own CPU, s", "floor", 1.4},
	{"own CPU, s", "twin", 0.8},
	{"peak memory, MiB", "twin", 0.7},
	{"writes a change", "floor", 1},
}

// figure is a metric of one contestant in all rounds.
type figure struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	// AtLeast says that the contestant gave up, so that it would have been more.
	AtLeast bool `json:"atLeast,omitempty"`
}

// figureOf returns the zero figure of no results.
func figureOf(m metric, results []result) figure {
	var values []float64
	gaveUp := false
	for _, r := range results {
		values = append(values, m.of(r))
		gaveUp = gaveUp || r.Answered < r.Changes
	}
	if len(values) == 0 {
		return figure{}
	}
	return figure{Median: median(values), Least: slices.Min(values), Most: slices.Max(values), AtLeast: gaveUp}
}

// ratio of two figures; false if they are of nothing.
func ratio(a, b figure) (float64, bool) {
	if a.Median <= 0 || b.Median <= 0 {
		return 0, false
	}
	return a.Median / b.Median, true
}

// median of an even number is the mean of the two in the middle.
func median[T float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile is the least value that so many percent of all are not above; 0 of none.
func percentile[T cmp.Ordered](all []T, percent float64) (none T) {
	if len(all) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(math.Ceil(float64(len(sorted))*percent/100))-1]
}
