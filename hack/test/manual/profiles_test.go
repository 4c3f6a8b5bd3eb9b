// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"samplecontroller.io/controller-manager/manager"

	"samplecontroller.io/sample-controller-manager/cmd/sample-controller-manager/app"
)

// TestDurationProfiles checks that the daemon accepts each row of durations, and that the row keeps what it
// says: the Lease expires in time, and a write ends before the webhook that it waits for.
func TestDurationProfiles(t *testing.T) {
	page := read(t, root+"manifests/docs/leadership.md")
	rows := regexp.MustCompile(`(?m)^\| (\d+) s[^|]*\| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (?:up to (\d+) s|none) \|$`).
		FindAllStringSubmatch(page, -1)
	if len(rows) != 3 {
		t.Fatalf("%d rows of durations, want 3", len(rows))
	}
	for _, row := range rows {
		if row[2] != row[1]+"s" {
			t.Errorf("%s: want it to say that nobody leads for up to %s", row[0], row[2])
		}
		write, err := time.ParseDuration(row[5])
		if webhook, _ := strconv.Atoi(row[6]); err != nil || write <= time.Duration(webhook)*time.Second {
			t.Errorf("%s: a write that takes %v, %v, cannot wait for the webhook", row[0], write, err)
		}
		command := manager.NewCommand(app.Program())
		command.SetOut(io.Discard)
		command.SetArgs([]string{"rbac", "--leader-elect-resource-namespace=default", "--leader-elect-lease-duration=" + row[2],
			"--leader-elect-renew-deadline=" + row[3], "--leader-elect-retry-period=" + row[4], "--write-timeout=" + row[5]})
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
	}
}

// TestMemoryProfiles checks the rows of memory limits by the formula below them.
func TestMemoryProfiles(t *testing.T) {
	const (
		perFoo = 9_000.0 // bytes, as the page computes from its table
		mebi   = 1 << 20
	)
	page := read(t, root+"manifests/docs/scaling.md")
	if !strings.Contains(page, "A Foo of three Pods takes 9 kB with\n11 ReplicaSets") {
		t.Error("the page does not say what a Foo takes")
	}
	rows := regexp.MustCompile(`(?m)^\| ([\d,]+) \| (\d+)Mi \| (\d+)MiB \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 3 {
		t.Fatalf("%d rows of memory, want 3", len(rows))
	}
	for _, row := range rows {
		foos, _ := strconv.ParseFloat(strings.ReplaceAll(row[1], ",", ""), 64)
		limit, _ := strconv.ParseFloat(row[2], 64)
		if least := 2*foos*perFoo/mebi + 80; limit < least {
			t.Errorf("%s: want at least %.0f MiB", row[0], least)
		}
		if want := strconv.Itoa(int(math.Floor(limit * 0.9))); row[3] != want {
			t.Errorf("%s: want a GOMEMLIMIT of nine tenths, %s MiB", row[0], want)
		}
	}
}
