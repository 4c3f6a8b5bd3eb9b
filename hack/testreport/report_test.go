// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// of are events of a test, or of a package: its output, and how it ended unless that is
// empty.
func of(pkg, test, end string, output ...string) (events []event) {
	for _, line := range output {
		events = append(events, event{Action: "output", Package: pkg, Test: test, Output: line + "\n"})
	}
	if end != "" {
		events = append(events, event{Action: end, Package: pkg, Test: test})
	}
	return events
}

func TestReport(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("line %d", i)
	}
	for name, test := range map[string]struct {
		events        [][]event
		out, failures string
	}{
		"passed": {
			events: [][]event{
				of("a", "TestX", "pass", "=== RUN   TestX", "    x_test.go:1: fine"),
				of("a", "", "pass", "some output", "PASS", "ok  \ta\t0.1s"),
				of("b", "", "skip", "?   \tb\t[no test files]"),
			},
			out: "ok  \ta\t0.1s\n",
		},
		"failed": {
			events: [][]event{
				of("a", "TestX", "", "=== RUN   TestX", "    loop.go:1: I1121 13:31:59.907075] Starting"),
				of("a", "TestX/one", "fail", "    x_test.go:1: want 1", "        at most", "    loop.go:1: E1121 13:31:59.907075] \"Sync failed\"", "--- FAIL: TestX/one (0.1s)"),
				of("a", "TestX/other", "pass", "    x_test.go:2: fine", "--- PASS: TestX/other (0.1s)"),
				of("a", "TestX", "fail", "--- FAIL: TestX (0.2s)"),
				of("a", "TestXY", "pass"),
				of("a", "", "fail", "FAIL", "FAIL\ta\t0.2s"),
			},
			out: "    loop.go:1: I1121 13:31:59.907075] Starting\n" +
				"    x_test.go:1: want 1\n        at most\n    loop.go:1: E1121 13:31:59.907075] \"Sync failed\"\n--- FAIL: TestX/one (0.1s)\n" +
				"    x_test.go:2: fine\n--- PASS: TestX/other (0.1s)\n--- FAIL: TestX (0.2s)\n" +
				"FAIL\nFAIL\ta\t0.2s\n",
			failures: "Failed: TestX/one (a)\n        x_test.go:1: want 1\n            at most\n",
		},
		"long": {
			events:   [][]event{of("a", "TestX", "fail", many...), of("a", "", "fail")},
			out:      strings.Join(many, "\n") + "\n",
			failures: "Failed: TestX (a)\n    " + strings.Join(many[:40], "\n    ") + "\n    ... 40 lines ...\n    " + strings.Join(many[80:], "\n    ") + "\n",
		},
		"crashed": {
			events: [][]event{
				of("a", "TestX", "", many[:30]...),
				of("a", "TestX/one", "", "panic: test timed out after 15m0s"),
				of("a", "TestX/one", "", many...),
				of("a", "", "fail", "FAIL\ta\t900s"),
			},
			out: strings.Join(many[:30], "\n") + "\npanic: test timed out after 15m0s\n" + strings.Join(many, "\n") + "\nFAIL\ta\t900s\n",
			failures: "Failed: TestX/one (a)\n    panic: test timed out after 15m0s\n    " + strings.Join(many[:39], "\n    ") + "\n    ... 61 lines ...\n" +
				"Failed: TestX (a)\n    " + strings.Join(many[:30], "\n    ") + "\n",
		},
		"not built": {
			events: [][]event{
				{{ImportPath: "a [a.test]", Action: "build-output", Output: "a_test.go:3:27: undefined: x\n"}, {ImportPath: "a [a.test]", Action: "build-fail"}},
				of("a", "", "", "FAIL\ta [build failed]"),
				{{Package: "a", Action: "fail", FailedBuild: "a [a.test]"}},
			},
			out:      "a_test.go:3:27: undefined: x\nFAIL\ta [build failed]\n",
			failures: "Failed: a\n    a_test.go:3:27: undefined: x\n",
		},
		"failed before any test": {
			events:   [][]event{of("a", "", "fail", "no cluster", "FAIL\ta\t0.1s")},
			out:      "no cluster\nFAIL\ta\t0.1s\n",
			failures: "Failed: a\n    no cluster\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, failures := reported(t, test.events, false)
			if diff := cmp.Diff(test.out, out); diff != "" {
				t.Errorf("unexpected output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.failures, failures); diff != "" {
				t.Errorf("unexpected failures (-want +got):\n%s", diff)
			}

			var all strings.Builder
			for _, events := range test.events {
				for _, e := range events {
					all.WriteString(e.Output)
				}
			}
			out, failures = reported(t, test.events, true)
			if diff := cmp.Diff(all.String(), out); diff != "" {
				t.Errorf("unexpected output with -v (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.failures, failures); diff != "" {
				t.Errorf("unexpected failures with -v (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoResultIsPassedOn(t *testing.T) {
	const line = "go: cannot find main module\n"
	var out bytes.Buffer
	if err := run(strings.NewReader(line), &out, filepath.Join(t.TempDir(), "failures"), false); err != nil || out.String() != line {
		t.Errorf("%q, %v, want %q", out.String(), err, line)
	}
}

// reported is what is reported of one go test.
func reported(t *testing.T, events [][]event, verbose bool) (out, failures string) {
	t.Helper()
	var in, written bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, some := range events {
		for _, e := range some {
			if err := encoder.Encode(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "failures")
	if err := run(&in, &written, path, verbose); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return written.String(), string(content)
}
