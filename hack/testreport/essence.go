// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// So many lines are told of what a failed test has said: those that came first and
// those that came last, or those before a crash and its first.
const first, last = 40, 20

var (
	// klogLine is one that the daemon logs, be it in the test's process or its own.
	klogLine = regexp.MustCompile(`^\s*(\S+\.go:\d+: )?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+`)
	// crash begins what the runtime says when it ends the process, or of a race. It is
	// followed by the stacks of all goroutines.
	crash = regexp.MustCompile(`^(panic|fatal error): |^WARNING: DATA RACE`)
	// verdict is what go test adds.
	verdict = regexp.MustCompile(`^\s*--- FAIL: |^(FAIL|exit status )`)
)

// essence returns the lines that tell why a test failed.
func essence(output []string) []string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		line = strings.TrimRight(line, " \t\r\n")
		if !klogLine.MatchString(line) && !verdict.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if at := slices.IndexFunc(lines, crash.MatchString); at >= 0 {
		return slices.Concat(shorten(lines[:at], 0, last), shorten(lines[at:], first, 0))
	}
	return shorten(lines, first, last)
}

// shorten leaves so many first and last lines.
func shorten(lines []string, first, last int) []string {
	left := len(lines) - first - last
	if left <= 0 {
		return lines
	}
	return slices.Concat(lines[:first], []string{fmt.Sprintf("... %d lines ...", left)}, lines[first+left:])
}
