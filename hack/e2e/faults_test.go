// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
)

// faultRow is what a fault does to us, and what it does to a peer, in figures.
type faultRow struct {
	// ID orders the rows: a letter for what fails, and a number.
	ID    string
	Fault string
	Ours  string
	// Peer begins with the peer's name, or says why there is none.
	Peer string
}

// faultTable has the rows so far.
var faultTable struct {
	mutex sync.Mutex
	rows  []faultRow
}

// reportFault adds a row to the table of faults, unless the test has failed: then the
// figures prove nothing. Tests that do are called TestFault..., so that
//
//	go test ./hack/e2e -run '^TestFault'
//
// prints the whole table.
func reportFault(t *testing.T, row faultRow) {
	t.Helper()
	if t.Failed() {
		return
	}
	faultTable.mutex.Lock()
	defer faultTable.mutex.Unlock()
	faultTable.rows = append(faultTable.rows, row)
}

// ofPeer says what a fault does to a peer, which is found out only where FAULTS_PEERS is
// set: it proves nothing about us, and takes time.
func ofPeer(t *testing.T, find func(*testing.T) string) string {
	t.Helper()
	if os.Getenv("FAULTS_PEERS") == "" {
		return "not looked at; make test-faults does"
	}
	return find(t)
}

// printFaults prints the table of faults, if there is something in it, also to the file
// that FAULTS_TABLE names.
func printFaults(out io.Writer) (err error) {
	faultTable.mutex.Lock()
	defer faultTable.mutex.Unlock()
	if len(faultTable.rows) == 0 {
		return nil
	}
	if path := os.Getenv("FAULTS_TABLE"); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("printing the table of faults: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = io.MultiWriter(out, file)
	}
	slices.SortStableFunc(faultTable.rows, func(a, b faultRow) int { return cmp.Compare(a.ID, b.ID) })
	fmt.Fprintln(out, "\nFaults, and what they did")
	for _, row := range faultTable.rows {
		fmt.Fprintf(out, "\n%-4s %s\n     ours: %s\n     peer: %s\n", row.ID, row.Fault, row.Ours, row.Peer)
	}
	return nil
}
