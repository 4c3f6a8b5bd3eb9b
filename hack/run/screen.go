// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"
)

// screen is what the person who runs the command looks at.
type screen struct {
	out   io.Writer
	start time.Time
}

// line prints one step, with the time since the start in front.
func (s screen) line(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// text prints as it is.
func (s screen) text(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}
