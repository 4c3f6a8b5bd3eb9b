// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

const source = `package stock
import "errors"

var left = 2

func Take(n int) error {
	if n > left {
		return errors.New("too few")
	}
	left = left - n
	note("taken")
	return nil
}

func note(what string) { println(what) }
`

const tests = `package stock; import "testing"

func TestTake(t *testing.T) {
	if Take(3) == nil || Take(1) != nil || left != 1 { t.Error(left) }
}
`

// report mutates a package in a temporary module and returns the report.
func report(t *testing.T, source, accepted string, n int) (string, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module stock\n", "stock.go": source, "stock_test.go": tests} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	*sample = n
	var out strings.Builder
	err := mutate(&out, accepted, []string{"."})
	if after, _ := os.ReadFile("stock.go"); string(after) != source {
		t.Errorf("source has changed:\n%s", after)
	}
	return out.String(), err
}

func TestSurvivors(t *testing.T) {
	got, err := report(t, source, "\nstock.go note\n\tremoved: println(what)\n\tOnly a log line.\n", 0)
	want := `stock.go:7	Take	n > left -> n >= left
stock.go:11	Take	removed: note("taken")
4 killed, 2 survived, 1 survived and accepted, 0 did not compile
`
	if got != want || err != nil {
		t.Errorf("got %v\n%swant\n%s", err, got, want)
	}
}

func TestSample(t *testing.T) {
	first, _ := report(t, source, "", 2)
	if second, _ := report(t, source, "", 2); first != second || strings.Count(first, "\n") > 3 {
		t.Errorf("report %q, then %q", first, second)
	}
}

func TestFailingTests(t *testing.T) {
	if got, err := report(t, strings.Replace(source, "n > left", "n < left", 1), "", 0); err == nil {
		t.Errorf("no error, report %q", got)
	}
}
