// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `package stock

import "errors"

var errEmpty = errors.New("empty")

type Stock struct {
	left int
	log  []string
}

func (s *Stock) Take(n int) error {
	if n <= 0 || n > s.left {
		return errEmpty
	}
	s.left = s.left - n
	s.note("taken")
	return nil
}

func (s *Stock) note(what string) { s.log = append(s.log, what) }
`

const tests = `package stock

import "testing"

func TestTake(t *testing.T) {
	s := &Stock{left: 2}
	if err := s.Take(3); err == nil {
		t.Error("took 3 of 2")
	}
	if err := s.Take(1); err != nil || s.left != 1 {
		t.Errorf("Take: %v, %d left", err, s.left)
	}
}
`

// inModule makes a module with the sources above the working directory.
func inModule(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.26\n", "stock/stock.go": source, "stock/stock_test.go": tests,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// outcome mutates the module and returns the lines of the report, with single spaces.
func outcome(t *testing.T, accepted string, o options) []string {
	t.Helper()
	if err := os.WriteFile("accepted.txt", []byte(accepted), 0o644); err != nil {
		t.Fatal(err)
	}
	o.accepted, o.parallel = "accepted.txt", 2
	var out strings.Builder
	if err := mutate(t.Context(), o, []string{"./..."}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(oneLines(out.String())), "\n")
}

func oneLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, oneLine(strings.TrimSpace(line)))
	}
	return strings.Join(lines, "\n")
}

func TestSurvivors(t *testing.T) {
	inModule(t)
	want := []string{
		`stock/stock.go:13 Stock.Take n <= 0 -> n < 0 SURVIVED`,
		`stock/stock.go:13 Stock.Take n > s.left -> n >= s.left SURVIVED`,
		`stock/stock.go:17 Stock.Take removed: s.note("taken") SURVIVED`,
		`stock/stock.go:21 Stock.note removed: s.log = append(s.log, what) SURVIVED`,
	}
	got := outcome(t, "", options{})
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
		t.Errorf("survivors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("11 mutants, 11 run: 7 killed, 4 survived (0 of them accepted); 0 did not compile", got[len(got)-1]); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if after, err := os.ReadFile("stock/stock.go"); err != nil || string(after) != source {
		t.Errorf("the source has changed: %v\n%s", err, after)
	}
}

func TestAcceptedSurvivors(t *testing.T) {
	inModule(t)
	accepted := "# comment\nstock/stock.go Stock.Take\n\tremoved: s.note(\"taken\")\n\tOnly a log.\n" +
		"stock/stock.go Stock.Take\n\tremoved: s.gone()\n\tIt is gone.\n" +
		"stock/stock.go Stock.Take\n\tremoved: s.left = s.left - n\n\tA test notices.\n" +
		"other.go other\n\tremoved: f()\n\tThis file is not mutated now.\n"
	want := []string{
		`Stale in the accepted survivors: stock/stock.go Stock.Take: there is no "removed: s.gone()"`,
		`Stale in the accepted survivors: stock/stock.go Stock.Take: a test notices "removed: s.left = s.left - n"`,
		`11 mutants, 2 run: 1 killed, 1 survived (1 of them accepted); 0 did not compile`,
	}
	if diff := cmp.Diff(want, outcome(t, accepted, options{run: "removed: s.(note|left)"})); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestSample(t *testing.T) {
	inModule(t)
	first := outcome(t, "", options{sample: 3, seed: 7})
	if summary := first[len(first)-1]; !strings.Contains(summary, ", 3 run: ") {
		t.Errorf("summary is %q, want 3 run", summary)
	}
	if diff := cmp.Diff(first, outcome(t, "", options{sample: 3, seed: 7})); diff != "" {
		t.Errorf("another sample for the same seed:\n%s", diff)
	}
}

func TestMalformedAcceptedSurvivors(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":       "a.go f\n\tremoved: g()\n",
		"no file":         "\tremoved: g()\n\treason\n",
		"change in front": "a.go f\nremoved: g()\n\treason\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "accepted.txt")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := readAccepted(path); err == nil {
				t.Error("no error")
			}
		})
	}
}
