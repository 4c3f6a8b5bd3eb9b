// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// The results page and its chart, in the directory of the reports.
const (
	pageFile    = "results.md"
	pictureFile = "results.svg"
)

// pageMetrics are the metrics on the page.
var pageMetrics = []string{
	untilDone, deploymentP50, deploymentP99, neighborsWait + " p99, ms", writes, refusedWrites,
	apiServerCPU, ownCPU, anonymousMemory, peakMemory, liveHeapPerFoo,
}

// drawn are the metrics in the chart, with their colors.
var drawn = []struct {
	metric string
	color  color.RGBA
}{
	{untilDone, color.RGBA{0x32, 0x6c, 0xe5, 0xff}},
	{deploymentP50, color.RGBA{0x8c, 0xb8, 0xff, 0xff}},
	{writes, color.RGBA{0xf2, 0x8e, 0x2b, 0xff}},
	{apiServerCPU, color.RGBA{0x59, 0xa1, 0x4f, 0xff}},
}

// writePage writes the results page of all reports in a directory, and returns its path.
func writePage(dir string) (path string, err error) {
	reports, err := readReports(dir)
	if err != nil {
		return "", err
	}
	if err := draw(reports, filepath.Join(dir, pictureFile)); err != nil {
		return "", fmt.Errorf("drawing the results: %w", err)
	}
	path = filepath.Join(dir, pageFile)
	return path, os.WriteFile(path, []byte(page(reports)), 0o644)
}

// readReports reads the reports in a directory and sorts them by load.
func readReports(dir string) (reports []*report, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	order := func(r *report) int { return slices.IndexFunc(loads, func(l load) bool { return l.name == r.Load }) }
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r := &report{}
		if err := json.Unmarshal(content, r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if i := order(r); i >= 0 {
			r.load = loads[i]
			reports = append(reports, r)
		}
	}
	slices.SortStableFunc(reports, func(a, b *report) int { return order(a) - order(b) })
	return reports, nil
}

// measured returns the names of the measured candidates, in the order of candidates.
func (r *report) measured() (names []string) {
	for _, c := range candidates {
		if slices.ContainsFunc(r.Results, func(result result) bool { return result.Candidate == c.name }) {
			names = append(names, c.name)
		}
	}
	return names
}

func page(reports []*report) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# Results\n\nMedians (minimum-maximum) of programs that do the same work: see [README.md](README.md).\nIn bold is the ratio to the daemon's median: above 1 the daemon is better.\n\n![Ratios to the daemon](%s)\n", pictureFile)
	for _, r := range reports {
		names := r.measured()
		fmt.Fprintf(&s, "\n## %s\n\nWhat happens: %s. %d rounds on %d CPUs, %s: `make bench BENCH=%s N=%d ROUNDS=%d CANDIDATES=%s`\n\n",
			r.Load, fmt.Sprintf(r.load.about, r.N), r.Rounds, r.CPUs, r.Taken.UTC().Format("2006-01-02"), r.Load, r.N, r.Rounds, strings.Join(names, ","))
		fmt.Fprintf(&s, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
		for _, metric := range pageMetrics {
			cells := []string{metric}
			for _, name := range names {
				cell := figure(r.values(metric, name))
				if ratio, ok := r.ratio(metric, name, names[0]); ok && name != names[0] {
					cell += fmt.Sprintf(" (**%s**)", digits(ratio))
				}
				cells = append(cells, cell)
			}
			if slices.ContainsFunc(cells[1:], func(cell string) bool { return cell != "-" }) {
				fmt.Fprintf(&s, "| %s |\n", strings.Join(cells, " | "))
			}
		}
		if verdicts := r.verdicts(); len(verdicts) > 0 {
			fmt.Fprintf(&s, "\nBudgets:\n\n- %s\n", strings.Join(verdicts, "\n- "))
		}
	}
	return s.String()
}

// draw draws a chart of the ratios of controller-runtime to the daemon.
func draw(reports []*report, path string) error {
	p := plot.New()
	p.Title.Text = "controller-runtime relative to the daemon"
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), vg.Points(-4)
	width := vg.Points(14)
	var names []string
	values := make([]plotter.Values, len(drawn))
	for _, r := range reports {
		if _, ok := r.ratio(apiServerCPU, "controller-runtime", "daemon"); !ok {
			continue
		}
		names = append(names, fmt.Sprintf("%s\n%d", r.Load, r.N))
		for i, d := range drawn {
			ratio, _ := r.ratio(d.metric, "controller-runtime", "daemon") // 0 if there is none
			values[i] = append(values[i], ratio)
		}
	}
	if len(names) == 0 {
		names, values = []string{""}, slices.Repeat([]plotter.Values{{0}}, len(drawn))
	}
	for i, d := range drawn {
		bars, err := plotter.NewBarChart(values[i], width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width, bars.Offset = d.color, 0, width*(vg.Length(i)-vg.Length(len(drawn)-1)/2)
		p.Add(bars)
		p.Legend.Add(d.metric, bars)
	}
	even := plotter.NewFunction(func(float64) float64 { return 1 })
	even.Dashes = []vg.Length{vg.Points(4), vg.Points(4)}
	p.Add(even)
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
	p.Y.Min, p.Y.Max = 0, 1.2*p.Y.Max
	return p.Save(24*vg.Centimeter, 10*vg.Centimeter, path)
}
