// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestPercentile(t *testing.T) {
	var all []int
	for i := range 200 {
		all = append(all, 200-i)
	}
	for percent, want := range map[float64]int{50: 100, 99: 198, 100: 200} {
		if got := percentile(all, percent); got != want {
			t.Errorf("p%v of 1 to 200 is %d, want %d", percent, got, want)
		}
	}
	if got := median([]int{7}); got != 7 {
		t.Errorf("the median of 7 alone is %d", got)
	}
}

func TestTable(t *testing.T) {
	chosen, err := chooseCandidates("daemon,controller-runtime,all-controllers")
	if err != nil {
		t.Fatal(err)
	}
	r := &report{load: creation, n: 10, rounds: 3, candidates: chosen}
	for _, daemon := range []float64{1, 2, 3} {
		for name, seconds := range map[string]float64{"daemon": daemon, "controller-runtime": 4, "all-controllers": 2} {
			result := result{candidate: name, values: []value{{untilDone, seconds}, {peakMemory, 1}}}
			if name == "controller-runtime" {
				result.values = append(result.values, value{"refused writes", 5})
			}
			r.results = append(r.results, result)
		}
	}
	table := r.String()
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"create: 10 Foos are created",
		"DAEMON CONTROLLER-RUNTIME ALL-CONTROLLERS",
		"until all is done, s 2 (1-3) 4 2x 2 1x",
		"peak memory, MiB 1 1 1x 1 1x",
		"refused writes - 5 -",
	} {
		if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("the table lacks the line %q:\n%s", want, table)
		}
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-load=creat", `unknown load "creat": must be one of create, scale`},
		{"-candidates=daemon,deamon", `unknown candidate "deamon": must be one of daemon, controller-runtime`},
		{"-rounds=0", "-rounds and -give-up-after must be positive"},
		{"create", `unexpected arguments ["create"]`},
	} {
		if _, err := parse(strings.Fields(test.args)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.args, err, test.want)
		}
	}
	o, err := parse(nil)
	if err != nil || len(o.loads) != len(loads) || o.candidates != nil || o.rounds != 5 {
		t.Errorf("without flags: %d loads, %d candidates, %d rounds, %v", len(o.loads), len(o.candidates), o.rounds, err)
	}
}

// TestLoadsNameCandidates finds typos before a run of an hour does.
func TestLoadsNameCandidates(t *testing.T) {
	for _, l := range loads {
		if _, err := chooseCandidates(l.candidates); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}
