// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for percent, want := range map[float64]time.Duration{50: 100, 99: 198, 100: 200} {
		if got := percentile(all, percent); got != want {
			t.Errorf("p%v of 1 to 200 is %d, want %d", percent, got, want)
		}
	}
	if got := percentile([]time.Duration{7}, 50); got != 7 {
		t.Errorf("p50 of 7 alone is %d", got)
	}
}

// testReport has two rounds of three contestants, of which one gave up.
func testReport(t *testing.T) *report {
	t.Helper()
	chosen, err := choose("daemon,twin,sample-controller,floor")
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(creation, 10, 2, chosen)
	for round, daemon := range []float64{1, 3} {
		for name, seconds := range map[string]float64{"daemon": daemon, "twin": 4, "sample-controller": 60, "floor": 2} {
			result := result{Contestant: name, Round: round, Changes: 10, Answered: 10, Seconds: seconds, CPU: seconds, Memory: 1 << 20}
			if name == "sample-controller" {
				result.Answered = 9
			}
			if name == "twin" {
				result.Calls.Refused = 5
			}
			r.Results = append(r.Results, result)
		}
	}
	r.summarise()
	return r
}

func TestTable(t *testing.T) {
	table := testReport(t).String()
	lines := map[string]string{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		lines[strings.Join(fields[:min(2, len(fields))], " ")] = strings.Join(fields, " ")
	}
	for start, want := range map[string]string{
		"until all":             "until all is done, s 2 (1-3) 4 2x > 60 >30x 2 1x daemon by 2x",
		"refused writes":        "refused writes a change 0 0.50 > 0 0 daemon",
		"peak memory,":          "peak memory, MiB 1 1 1x > 1 >1x 1 1x daemon, twin by >1x",
		"sample-controller had": "sample-controller had answered 9 of 10 changes when it was given up",
	} {
		if lines[start] != want {
			t.Errorf("got %q, want %q", lines[start], want)
		}
	}
	if want := "budget: until all is done, s: 1.00 times the floor's, at most 1.15: kept"; !strings.Contains(table, want) {
		t.Errorf("the table lacks %q:\n%s", want, table)
	}
	if want := "budget: peak memory, MiB: 1.00 times the twin's, at most 0.70: OVER"; !strings.Contains(table, want) {
		t.Errorf("the table lacks %q:\n%s", want, table)
	}
}

// TestPicture wants a dot for each figure that has a ratio, within the picture.
func TestPicture(t *testing.T) {
	decoder := xml.NewDecoder(bytes.NewReader(testReport(t).picture()))
	circles := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "circle" {
			circles++
		}
	}
	// The time, CPU and memory of four.
	if circles != 12 {
		t.Errorf("there are %d dots, want 12", circles)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-load=creat", `there is no load "creat"; there are: create, scale`},
		{"-contestants=daemon,twn", `there is no contestant "twn"; there are: daemon, twin`},
		{"-rounds=0", "-rounds and -patience must be more than 0"},
		{"create", `remove ["create"]`},
	} {
		if _, err := parse(strings.Fields(test.args)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.args, err, test.want)
		}
	}
	o, err := parse(nil)
	if err != nil || len(o.loads) != len(loads) || len(o.contestants) != 4 || o.rounds != 5 {
		t.Errorf("without flags: %d loads, %d contestants, %d rounds, %v", len(o.loads), len(o.contestants), o.rounds, err)
	}
}
