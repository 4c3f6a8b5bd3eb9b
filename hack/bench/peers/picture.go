// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
)

// The picture, in pixels: what is measured, who, the dots, the figures.
const (
	pictureWidth = 900
	whoX         = 220
	plotX        = 345
	plotWidth    = 365
	figuresX     = plotX + plotWidth + 20
	rowHeight    = 18
	bandGap      = 12
	headHeight   = 92
	footHeight   = 20
)

// style has no variables: not everything that shows an SVG knows those.
const style = `
  svg { font: 12px system-ui, sans-serif } rect { fill: #fff } text { fill: #1f2328 } line { stroke: #d8dde3 }
  .title { font-size: 16px; font-weight: 600 } .faint { fill: #6a737d } .one { stroke: #6a737d } .middle { text-anchor: middle }
`

// colors are of the contestants, in the order in which they can be chosen.
var colors = []string{"#2f6fde", "#d9822b", "#8a5bc4", "#7a828c", "#2a9d8f"}

func colorOf(name string) string {
	for i, c := range contestants {
		if c.name == name {
			return colors[i%len(colors)]
		}
	}
	return colors[0]
}

// axis is the scale of ratios, on which twice as much is as far as half as much.
type axis struct{ least, most float64 } // powers of 2

// x is where a ratio is.
func (a axis) x(ratio float64) float64 {
	return plotX + plotWidth*(math.Log2(ratio)-a.least)/(a.most-a.least)
}

// axis has room for all ratios.
func (r *report) axis() axis {
	a := axis{-1, 1}
	for _, m := range r.metrics() {
		first := r.Figures[m.name][r.contestants[0].name]
		for _, c := range r.contestants {
			f := r.Figures[m.name][c.name]
			if _, ok := ratio(f, first); !ok {
				continue
			}
			a.most = max(a.most, math.Ceil(math.Log2(f.Most/first.Median)))
			if f.Least > 0 {
				a.least = min(a.least, math.Floor(math.Log2(f.Least/first.Median)))
			}
		}
	}
	return a
}

// picture is an SVG: of each metric a dot for each contestant, where it is as a multiple
// of the first one's, with a line from the least to the most.
func (r *report) picture() []byte {
	metrics, a := slices.DeleteFunc(r.metrics(), r.nobodyHas), r.axis()
	height := headHeight + footHeight + len(metrics)*(len(r.contestants)*rowHeight+bandGap)
	var s bytes.Buffer
	text := func(x float64, y int, class, content string) {
		fmt.Fprintf(&s, "<text x=\"%.0f\" y=\"%d\" class=%q>%s</text>\n", x, y, class, html.EscapeString(content))
	}
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\"/>\n", pictureWidth, height, style)
	text(20, 30, "title", r.Load+": "+r.About)
	text(20, 50, "faint", fmt.Sprintf("As a multiple of the %s's: left of the line is less, which is better. Medians, with the least and the most; rounds: %d.", r.contestants[0].name, r.Rounds))
	step := max(1, math.Ceil((a.most-a.least)/8))
	for power := math.Ceil(a.least/step) * step; power <= a.most; power += step {
		class, x := "", a.x(math.Exp2(power))
		if power == 0 {
			class = "one"
		}
		fmt.Fprintf(&s, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" class=%q/>\n", x, x, headHeight-8, height-footHeight, class)
		text(x, headHeight-14, "faint middle", multiple(power))
	}
	y := headHeight
	for _, m := range metrics {
		text(20, y+rowHeight-4, "", m.name)
		first := r.Figures[m.name][r.contestants[0].name]
		for _, c := range r.contestants {
			f := r.Figures[m.name][c.name]
			text(whoX, y+rowHeight-4, "faint", c.name)
			text(figuresX, y+rowHeight-4, "", f.String())
			if times, ok := ratio(f, first); ok {
				least := a.x(math.Exp2(a.least))
				if f.Least > 0 {
					least = a.x(f.Least / first.Median)
				}
				fmt.Fprintf(&s, "<path d=\"M%.1f %dH%.1f\" stroke=%q stroke-width=\"2\" opacity=\"0.5\"/><circle cx=\"%.1f\" cy=\"%d\" r=\"4.5\" fill=%q/>\n",
					least, y+rowHeight/2, a.x(f.Most/first.Median), colorOf(c.name), a.x(times), y+rowHeight/2, colorOf(c.name))
			}
			y += rowHeight
		}
		y += bandGap
	}
	fmt.Fprintln(&s, "</svg>")
	return s.Bytes()
}

// nobodyHas tells of a metric that is 0 for all.
func (r *report) nobodyHas(m metric) bool {
	for _, f := range r.Figures[m.name] {
		if f.Most > 0 {
			return false
		}
	}
	return true
}

// multiple spells out a power of 2.
func multiple(power float64) string {
	if power < 0 {
		return fmt.Sprintf("1/%.0f", math.Exp2(-power))
	}
	return fmt.Sprintf("%.0fx", math.Exp2(power))
}
