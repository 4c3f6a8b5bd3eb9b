// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// acceptance is a mutant that may survive.
type acceptance struct {
	mutant
	reason        string
	found, killed bool
}

// readAccepted reads the accepted survivors. An entry has three lines, the last two of
// which are indented: file and function, the change as the report prints it, the reason.
// Lines that begin with # are comments.
func readAccepted(path string) ([]*acceptance, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the accepted survivors: %w", err)
	}
	var all []*acceptance
	var lines []string
	for number, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if indented := strings.HasPrefix(line, "\t"); indented != (len(lines) > 0) {
			return nil, fmt.Errorf("%s:%d: an entry is a line with file and function, then two lines that begin with a tab: change and reason", path, number+1)
		}
		lines = append(lines, strings.TrimSpace(line))
		if len(lines) < 3 {
			continue
		}
		file, function, _ := strings.Cut(lines[0], " ")
		all = append(all, &acceptance{mutant: mutant{file: file, function: function, change: lines[1]}, reason: lines[2]})
		lines = nil
	}
	if len(lines) > 0 {
		return nil, fmt.Errorf("%s: the last entry has no reason", path)
	}
	return all, nil
}
