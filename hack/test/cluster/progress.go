// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// progressInterval is how often a long build reports progress.
const progressInterval = 15 * time.Second

// buildProgress counts the lines that `go list` or `go build -v` writes to standard error, and
// reports the counts periodically.
type buildProgress struct {
	out                  io.Writer
	packages             int // to compile at most, without those in the build cache; 0 for go list
	downloaded, compiled int
	started, reported    time.Time
}

func newBuildProgress(out io.Writer, packages int) *buildProgress {
	now := time.Now()
	return &buildProgress{out: out, packages: packages, started: now, reported: now}
}

// Write counts modules and packages, one per line.
func (p *buildProgress) Write(output []byte) (int, error) {
	for line := range bytes.Lines(output) {
		if bytes.HasPrefix(line, []byte("go: downloading ")) {
			p.downloaded++
		} else {
			p.compiled++
		}
	}
	now := time.Now()
	if now.Sub(p.reported) < progressInterval {
		return len(output), nil
	}
	p.reported = now
	after := now.Sub(p.started).Round(time.Second)
	if p.packages == 0 {
		fmt.Fprintf(p.out, "  downloaded %d modules after %s\n", p.downloaded, after)
	} else {
		fmt.Fprintf(p.out, "  compiled %d of %d packages after %s\n", p.compiled, p.packages, after)
	}
	return len(output), nil
}
