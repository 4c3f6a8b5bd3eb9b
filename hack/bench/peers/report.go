// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is all that was found out about one load.
type report struct {
	Load    string    `json:"load"`
	About   string    `json:"about"`
	Foos    int       `json:"foos"`
	Rounds  int       `json:"rounds"`
	Taken   time.Time `json:"taken"`
	CPUs    int       `json:"cpus"`
	Go      string    `json:"go"`
	Results []result  `json:"results"`
	// Figures is from the metric to the contestant.
	Figures map[string]map[string]figure `json:"figures"`

	load        load
	contestants []contestant
}

func newReport(l load, foos, rounds int, contestants []contestant) *report {
	return &report{
		Load: l.name, About: fmt.Sprintf(l.about, foos), Foos: foos, Rounds: rounds,
		Taken: time.Now(), CPUs: runtime.NumCPU(), Go: runtime.Version(),
		load: l, contestants: contestants,
	}
}

// summarise fills in the figures.
func (r *report) summarise() {
	r.Figures = map[string]map[string]figure{}
	for _, m := range r.metrics() {
		r.Figures[m.name] = map[string]figure{}
		for _, c := range r.contestants {
			r.Figures[m.name][c.name] = figureOf(m, r.resultsOf(c.name))
		}
	}
}

func (r *report) metrics() []metric {
	return slices.DeleteFunc(slices.Clone(metrics), func(m metric) bool { return !m.on(r.load) })
}

func (r *report) resultsOf(name string) []result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(r result) bool { return r.Contestant != name })
}

// write writes the report as JSON and as a picture, and returns where they are.
func (r *report) write(dir string) (paths []string, err error) {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, fmt.Sprintf("%s-%d", r.Load, r.Foos))
	for path, content := range map[string][]byte{base + ".json": content, base + ".svg": r.picture()} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}

// String is the table.
func (r *report) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s\n", r.Load, r.About)
	fmt.Fprintf(&s, "median (least to most) of %d alternating rounds, and how many times the %s's; %d CPUs, load average %s\n",
		r.Rounds, r.contestants[0].name, r.CPUs, r.loadAverages())
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\t")
	for _, c := range r.contestants {
		fmt.Fprintf(w, "%s\t\t", strings.ToUpper(c.name))
	}
	fmt.Fprintln(w, "WHO WINS")
	for _, m := range r.metrics() {
		figures := r.Figures[m.name]
		fmt.Fprintf(w, "%s\t", m.name)
		for i, c := range r.contestants {
			times := ""
			if i > 0 {
				times = inTimes(figures[c.name], figures[r.contestants[0].name])
			}
			fmt.Fprintf(w, "%s\t%s\t", figures[c.name], times)
		}
		fmt.Fprintln(w, r.winner(m))
	}
	_ = w.Flush() // to a strings.Builder, which cannot fail
	for _, line := range append(r.gaveUp(), r.verdicts()...) {
		fmt.Fprintln(&s, line)
	}
	return s.String()
}

// loadAverages is how busy the machine was, with the benchmark itself.
func (r *report) loadAverages() string {
	least, most := math.Inf(1), 0.0
	for _, result := range r.Results {
		least, most = min(least, result.LoadAverage), max(most, result.LoadAverage)
	}
	return fmt.Sprintf("%.1f to %.1f", least, most)
}

// String is a median with the spread, in as few digits as say something.
func (f figure) String() string {
	if f.AtLeast {
		return "> " + digits(f.Median)
	}
	if f.Least == f.Most {
		return digits(f.Median)
	}
	return fmt.Sprintf("%s (%s-%s)", digits(f.Median), digits(f.Least), digits(f.Most))
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

// inTimes is how many times the other a figure is, if that can be said.
func inTimes(f, other figure) string {
	times, ok := ratio(f, other)
	if !ok {
		return ""
	}
	if f.AtLeast {
		return fmt.Sprintf(">%sx", digits(times))
	}
	return digits(times) + "x"
}

// winner is who does with least, of all but the floor, which does not do all that there
// is to do, and how many times as much the next takes.
func (r *report) winner(m metric) string {
	figures := r.Figures[m.name]
	rivals := slices.DeleteFunc(namesOf(r.contestants), func(name string) bool { return name == "floor" })
	slices.SortStableFunc(rivals, func(a, b string) int { return figures[a].compare(figures[b]) })
	next := slices.IndexFunc(rivals, func(name string) bool { return figures[name].compare(figures[rivals[0]]) > 0 })
	if next < 0 {
		return ""
	}
	who := strings.Join(rivals[:next], ", ")
	first, second := figures[rivals[0]], figures[rivals[next]]
	if times := inTimes(second, first); times != "" {
		who += " by " + times
	}
	if first.Most >= second.Least && !second.AtLeast {
		who += ", within the spread"
	}
	return who
}

// compare returns a negative number if f is less than the other, a positive if more.
func (f figure) compare(other figure) int {
	if f.AtLeast != other.AtLeast {
		if f.AtLeast {
			return 1
		}
		return -1
	}
	return cmp.Compare(f.Median, other.Median)
}

// gaveUp tells of contestants that were not done in time.
func (r *report) gaveUp() []string {
	var lines []string
	for _, result := range r.Results {
		if result.Answered < result.Changes {
			lines = append(lines, fmt.Sprintf("%s had answered %d of %d changes when it was given up", result.Contestant, result.Answered, result.Changes))
		}
	}
	return lines
}

// verdicts holds the daemon against its budgets, as far as the others were there.
func (r *report) verdicts() []string {
	var lines []string
	for _, b := range budgets[r.Load] {
		ours, other := r.Figures[b.metric]["daemon"], r.Figures[b.metric][b.of]
		times, ok := ratio(ours, other)
		if !ok {
			continue
		}
		verdict := "kept"
		if times > b.most {
			verdict = "OVER"
		}
		lines = append(lines, fmt.Sprintf("budget: %s: %.2f times the %s's, at most %.2f: %s", b.metric, times, b.of, b.most, verdict))
	}
	return lines
}
