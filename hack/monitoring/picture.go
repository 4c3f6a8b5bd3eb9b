// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Mark is a moment that a picture points out.
type Mark struct {
	Time time.Time
	Text string
}

// Picture is a dashboard over a time, drawn.
type Picture struct {
	Dashboard Dashboard
	Over      promv1.Range
	Window    time.Duration // what rates are taken over
	Marks     []Mark
	Caption   string // its lines
}

// The measures of a picture: of a column, a row and a heading of the dashboard's grid, and
// around a panel and its chart.
const (
	columnWidth, rowHeight, headingHeight = 50, 23, 26
	gap, chartLeft, chartTop, chartBottom = 6, 52, 34, 50
	captionHeight                         = 16
	legendLines                           = 2
)

var colours = []string{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"}

// SVG evaluates all queries of the dashboard and draws them.
func (p Picture) SVG(ctx context.Context, prometheus promv1.API) ([]byte, error) {
	var body bytes.Buffer
	top, below := 0, 0
	row := -1
	for _, panel := range p.Dashboard.Panels {
		if panel.GridPos.Y != row {
			row, top = panel.GridPos.Y, below
		}
		if len(panel.Targets) == 0 {
			fmt.Fprintf(&body, `<text x="%d" y="%d" class="heading">%s</text>`+"\n", gap, top+headingHeight-8, escape(panel.Title))
			below = top + headingHeight
			continue
		}
		lines, err := panel.Lines(ctx, prometheus, p.Window, p.Over)
		if err != nil {
			return nil, err
		}
		p.draw(&body, panel, lines, panel.GridPos.X*columnWidth, top)
		below = max(below, top+panel.GridPos.H*rowHeight)
	}
	caption := strings.Split(p.Caption, "\n")
	for i, mark := range p.Marks {
		caption = append(caption, fmt.Sprintf("%d: %s", i+1, mark.Text))
	}
	for _, line := range caption {
		below += captionHeight
		fmt.Fprintf(&body, `<text x="%d" y="%d">%s</text>`+"\n", gap, below, escape(line))
	}
	var picture bytes.Buffer
	fmt.Fprintf(&picture, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11" fill="#333">
<style>.heading{font-size:14px;font-weight:bold}.title{font-weight:bold}.small{font-size:9.5px}polyline{fill:none;stroke-width:1.3}</style>
<rect width="100%%" height="100%%" fill="#fff"/>
`, 24*columnWidth, below+captionHeight)
	picture.Write(body.Bytes())
	picture.WriteString("</svg>\n")
	return picture.Bytes(), nil
}

// draw draws a panel whose upper left corner is at x and y.
func (p Picture) draw(w *bytes.Buffer, panel Panel, lines []Line, x, y int) {
	width, height := panel.GridPos.W*columnWidth, panel.GridPos.H*rowHeight
	left, right := float64(x+chartLeft), float64(x+width-2*gap)
	upper, lower := float64(y+chartTop), float64(y+height-chartBottom)
	unit := panel.FieldConfig.Defaults.Unit
	highest := ceiling(lines, unit)
	across := func(t time.Time) float64 {
		return left + (right-left)*t.Sub(p.Over.Start).Seconds()/p.Over.End.Sub(p.Over.Start).Seconds()
	}
	up := func(value float64) float64 { return lower - (lower-upper)*value/highest }

	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="#fff" stroke="#ddd"/><text x="%d" y="%d" class="title">%s</text>`+"\n",
		x+gap/2, y+gap/2, width-gap, height-gap, x+2*gap, y+17, escape(panel.Title))
	for i := range 5 {
		value := highest * float64(i) / 4
		fmt.Fprintf(w, `<path d="M%.0f %.1fH%.0f" stroke="#eee"/><text x="%.0f" y="%.1f" class="small" text-anchor="end">%s</text>`+"\n",
			left, up(value), right, left-4, up(value)+3, format(value, unit))
	}
	minutes := int(math.Ceil(p.Over.End.Sub(p.Over.Start).Minutes() / 6))
	for m := 0; p.Over.Start.Add(time.Duration(m) * time.Minute).Before(p.Over.End); m += minutes {
		fmt.Fprintf(w, `<text x="%.0f" y="%.0f" class="small" text-anchor="middle">%d min</text>`+"\n", across(p.Over.Start.Add(time.Duration(m)*time.Minute)), lower+12, m)
	}
	for i, mark := range p.Marks {
		fmt.Fprintf(w, `<path d="M%.1[1]f %.0[2]fV%.0[3]f" stroke="#999" stroke-dasharray="3 3"/><text x="%.1[1]f" y="%.0[2]f" class="small" text-anchor="middle">%[4]d</text>`+"\n",
			across(mark.Time), upper-2, lower, i+1)
	}
	for i, line := range lines {
		var points strings.Builder
		for _, point := range line.Points {
			fmt.Fprintf(&points, "%.1f,%.1f ", across(point.Timestamp.Time()), up(float64(point.Value)))
		}
		fmt.Fprintf(w, `<polyline stroke="%s" points="%s"/>`+"\n", colours[i%len(colours)], strings.TrimSpace(points.String()))
	}
	legend(w, lines, x+2*gap, int(lower)+26, width-4*gap)
}

// legend names as many lines as there is room for, those that rise highest first.
func legend(w *bytes.Buffer, lines []Line, x, y, width int) {
	order := make([]int, len(lines))
	for i := range lines {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(highest(lines[b]), highest(lines[a])) })
	const perLetter, reserve = 5.2, 60
	at, row := 0.0, 0
	for n, i := range order {
		needs := 16 + perLetter*float64(len(lines[i].Name))
		room := float64(width)
		if row == legendLines-1 && n < len(order)-1 {
			room -= reserve // to say how many more there are
		}
		if at+needs > room && at > 0 {
			if row++; row == legendLines {
				fmt.Fprintf(w, `<text x="%d" y="%d" class="small" text-anchor="end">and %d more</text>`+"\n", x+width, y+13*(row-1), len(order)-n)
				return
			}
			at = 0
		}
		fmt.Fprintf(w, `<rect x="%.0f" y="%d" width="9" height="3" fill="%s"/><text x="%.0f" y="%d" class="small">%s</text>`+"\n",
			float64(x)+at, y+13*row-5, colours[i%len(colours)], float64(x)+at+12, y+13*row, escape(lines[i].Name))
		at += needs + 8
	}
}

func highest(line Line) float64 {
	return float64(slices.MaxFunc(line.Points, func(a, b model.SamplePair) int { return cmp.Compare(a.Value, b.Value) }).Value)
}

// ceiling returns a round value that no line surmounts, of which the quarters are round.
func ceiling(lines []Line, unit string) float64 {
	top := 0.0
	for _, line := range lines {
		top = max(top, highest(line))
	}
	if top <= 0 {
		return 1
	}
	step := 1.0
	if unit == "bytes" {
		step = 1 << 20
	}
	for top/4 < step {
		step /= 10
	}
	for {
		for _, factor := range []float64{1, 1.5, 2, 2.5, 5} {
			if 4*step*factor >= top {
				return 4 * step * factor
			}
		}
		step *= 10
	}
}

// format spells a value in a unit of Grafana's.
func format(value float64, unit string) string {
	number := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	switch {
	case unit == "bytes":
		return number(value/(1<<20)) + " MiB"
	case unit == "s" && value > 0 && value < 1:
		return number(value*1000) + " ms"
	case unit == "s":
		return number(value) + " s"
	case unit == "ops" || unit == "wps" || unit == "reqps":
		return number(value) + "/s"
	}
	return number(value)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
