// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// gap is the number of spaces between columns.
const gap = 2

// minWrap is the smallest width to which a column is wrapped.
const minWrap = 12

// table aligns columns. If a row does not fit into the width of a page, its longest cells are wrapped.
type table struct {
	w     io.Writer
	rows  [][]string
	notes [][]string // the notes below each row
}

func newTable(w io.Writer, heads ...any) *table {
	t := &table{w: w}
	t.row(heads...)
	return t
}

// row adds a row.
func (t *table) row(cells ...any) {
	var row []string
	for i, cell := range cells {
		text := fmt.Sprint(cell)
		indent := ""
		if i == 0 && strings.HasPrefix(text, "  ") {
			indent = "  "
		}
		row = append(row, indent+line(text))
	}
	t.rows, t.notes = append(t.rows, row), append(t.notes, nil)
}

// note adds a text below the last row, unless it is empty.
func (t *table) note(text string) {
	if text != "" {
		last := len(t.notes) - 1
		t.notes[last] = append(t.notes[last], line(text))
	}
}

// flush prints the table, without spaces at the ends of its lines.
func (t *table) flush() {
	widths := t.widths()
	for i, row := range t.rows {
		var cells [][]string
		height := 0
		for column, cell := range row {
			lines := []string{cell}
			if utf8.RuneCountInString(cell) > widths[column] {
				lines = wrap(cell, widths[column])
			}
			cells, height = append(cells, lines), max(height, len(lines))
		}
		for part := range height {
			var text strings.Builder
			for column, lines := range cells {
				cell := ""
				if part < len(lines) {
					cell = lines[part]
				}
				text.WriteString(cell)
				text.WriteString(strings.Repeat(" ", max(widths[column]-utf8.RuneCountInString(cell), 0)+gap))
			}
			fmt.Fprintln(t.w, strings.TrimRight(text.String(), " "))
		}
		for _, note := range t.notes[i] {
			PrintWrapped(t.w, "    ", note)
		}
	}
}

// widths returns the widths of the columns. The widest are narrowed until the table fits.
func (t *table) widths() []int {
	widths := make([]int, len(t.rows[0]))
	total := gap * (len(widths) - 1)
	for _, row := range t.rows {
		for column, cell := range row {
			widths[column] = max(widths[column], utf8.RuneCountInString(cell))
		}
	}
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := 0
		for column := range widths {
			if widths[column] >= widths[widest] {
				widest = column
			}
		}
		if widths[widest] <= minWrap {
			break
		}
		widths[widest]--
	}
	return widths
}

// PrintWrapped prints a text that begins with a prefix, as the pages do: it cannot control a terminal, and is broken
// into lines of 80 columns. Further lines are indented by the width of the prefix. A command of kubectl at the end
// stays whole, on a line of its own, so that it can be copied.
func PrintWrapped(w io.Writer, prefix, text string) {
	text = Short(line(text))
	lines := wrap(text, width-len(prefix))
	if before, command, ok := strings.Cut(text, ": kubectl "); ok && len(lines) > 1 {
		lines = append(wrap(before+":", width-len(prefix)), "kubectl "+command)
	}
	for _, part := range lines {
		fmt.Fprintf(w, "%s%s\n", prefix, part)
		prefix = strings.Repeat(" ", len(prefix))
	}
}

// wrap breaks a text between words, so that lines are not longer than limit, unless a word is.
func wrap(text string, limit int) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= limit:
			current += " " + word
		default:
			lines, current = append(lines, current), word
		}
	}
	return append(lines, current)
}
