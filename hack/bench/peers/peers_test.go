// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"samplecontroller.io/sample-controller-manager/hack/cluster"
)

// TestContestants has all contestants meet few Foos, and wants of the daemon no more
// writes than cannot be avoided, whatever the machine does else. It times nothing.
func TestContestants(t *testing.T) {
	const foos = 10
	root, err := cluster.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	binaries, err := buildAll(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-rounds=1", "-n=10", "-patience=5m"})
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := chooseLoads("create")
	if err != nil {
		t.Fatal(err)
	}
	r, err := o.bench(t.Context(), chosen[0], binaries)
	if err != nil {
		t.Fatal(err)
	}
	r.summarise()
	t.Logf("\n%s", r)
	if len(r.Results) != len(o.contestants) {
		t.Errorf("%d results, want %d", len(r.Results), len(o.contestants))
	}
	for _, result := range r.Results {
		if result.Answered != foos || result.Seconds <= 0 || result.Memory == 0 || result.APIServerCPU <= 0 {
			t.Errorf("%+v, want all %d changes answered, and what it took", result, foos)
		}
		const least = 2 * foos // a Deployment and a status
		frugal := result.Contestant == "daemon" || result.Contestant == "floor"
		if got := result.Calls; got.Writes < least || frugal && (got.Writes != least || got.Refused != 0 || got.Reads != 0) {
			t.Errorf("%s made %d writes, of which %d were refused, and %d reads, want %d writes: %v",
				result.Contestant, got.Writes, got.Refused, got.Reads, least, got.Count)
		}
	}

	paths, err := r.write(t.TempDir())
	if err != nil || len(paths) != 2 || filepath.Ext(paths[0]) != ".json" {
		t.Fatalf("wrote %v, %v, want JSON and a picture", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var read report
	if err := json.Unmarshal(content, &read); err != nil || len(read.Results) != len(r.Results) {
		t.Errorf("the JSON has %d results, %v", len(read.Results), err)
	}
}
