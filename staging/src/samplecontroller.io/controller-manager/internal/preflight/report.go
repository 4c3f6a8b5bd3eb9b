// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Result is the result of a check.
type Result string

const (
	// OK means that nothing needs to be done.
	OK Result = "OK"
	// WARN means that the program runs, but something waits or is not protected.
	WARN Result = "WARN"
	// FAIL means that the program would not run, or would not do all of its work.
	FAIL Result = "FAIL"
	// SKIP means that the check could not be made.
	SKIP Result = "SKIP"
)

// Report holds the results of all checks.
type Report struct {
	Checks []Check `json:"checks"`
}

// Check is one row of the table.
type Check struct {
	Check   string `json:"check"`
	Result  Result `json:"result"`
	Details string `json:"details"`
}

func (r *Report) add(check string, result Result, format string, args ...any) {
	r.Checks = append(r.Checks, Check{check, result, fmt.Sprintf(format, args...)})
}

// Count returns the number of checks with the result.
func (r *Report) Count(result Result) int {
	count := 0
	for _, c := range r.Checks {
		if c.Result == result {
			count++
		}
	}
	return count
}

// WriteTable writes the checks as a table. Its last line counts the problems.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "CHECK\tRESULT\tDETAILS")
	for _, c := range r.Checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Check, c.Result, strings.Join(strings.Fields(c.Details), " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nFailed: %d. Warnings: %d. Skipped: %d.\n", r.Count(FAIL), r.Count(WARN), r.Count(SKIP))
	return err
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
