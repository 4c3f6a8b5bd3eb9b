// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"regexp"

	"golang.org/x/term"
)

// colors are the words that stand out on a terminal, with the escape sequence of their color.
var colors = []struct {
	words *regexp.Regexp
	code  string
}{
	{regexp.MustCompile(`(?m)\b(Degraded|Stalled|FAIL|denied|failed|error|panic|timeout|Error|Warning|nobody leads|403)\b|<- differs|^Problems:$`), "\x1b[31m"},
	{regexp.MustCompile(`\b(WaitingForAPI|Starting|Stopping|Reconciling|WARN|SKIP)\b`), "\x1b[33m"},
	{regexp.MustCompile(`\b(Running|Ready|OK|success|written)\b`), "\x1b[32m"},
}

// painter colors lines.
type painter struct{ w io.Writer }

// newPainter returns w, with colors if it is a terminal.
func newPainter(w io.Writer) io.Writer { return paintedLike(w, w) }

// paintedLike returns w, with colors if like is a terminal.
func paintedLike(w, like io.Writer) io.Writer {
	if _, painted := w.(painter); painted || !isTerminal(like) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return w
	}
	return painter{w}
}

// Write implements io.Writer. Each call has whole lines.
func (p painter) Write(text []byte) (int, error) {
	painted := text
	for _, color := range colors {
		painted = color.words.ReplaceAll(painted, []byte(color.code+"$0\x1b[0m"))
	}
	if _, err := p.w.Write(painted); err != nil {
		return 0, err
	}
	return len(text), nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
