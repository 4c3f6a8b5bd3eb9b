// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// slack is the extra time that a busy machine may take. Processes may even pause for a minute.
const slack = 90 * time.Second

// WantSoon checks that something took at most the given time, plus slack for a busy machine.
// The table of faults shows the time it took.
func WantSoon(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	if took > most+slack {
		t.Errorf("%s took %v, want at most %v plus %v for a busy machine", what, took, most, slack)
	}
}

// Seconds formats a duration for the table.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// FaultRow describes, in figures, the effect of a fault on the daemon and on a peer.
type FaultRow struct {
	// ID orders the rows: a letter for the failing part, and a number.
	ID    string
	Fault string
	Ours  string
	// Peer starts with the peer's name, or says why there is none.
	Peer string
}

var faultTable struct {
	mutex sync.Mutex
	rows  []FaultRow
}

// ReportFault adds a row to the table of faults, unless the test has failed. Tests that call
// it are named TestFault..., so that -run '^TestFault' prints the whole table.
func ReportFault(t *testing.T, row FaultRow) {
	t.Helper()
	if t.Failed() {
		return
	}
	faultTable.mutex.Lock()
	defer faultTable.mutex.Unlock()
	faultTable.rows = append(faultTable.rows, row)
}

// printFaults prints the rows of the package. It also appends them to the file that
// FAULTS_TABLE names, in a single write, because packages run in parallel.
func printFaults(out io.Writer) (err error) {
	faultTable.mutex.Lock()
	defer faultTable.mutex.Unlock()
	slices.SortStableFunc(faultTable.rows, func(a, b FaultRow) int { return cmp.Compare(a.ID, b.ID) })
	var table bytes.Buffer
	for _, row := range faultTable.rows {
		fmt.Fprintf(&table, "\n%-4s %s\n     ours: %s\n     peer: %s\n", row.ID, row.Fault, row.Ours, row.Peer)
	}
	if table.Len() == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nFaults\n%s", table.String())
	path := os.Getenv("FAULTS_TABLE")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the table of faults: %w", err)
	}
	_, err = file.Write(table.Bytes())
	return errors.Join(err, file.Close())
}
