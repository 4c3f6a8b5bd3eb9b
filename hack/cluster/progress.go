// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// progressInterval is how often a build that takes long says so.
const progressInterval = 15 * time.Second

// buildProgress reads what `go list` or `go build -v` writes to standard error, and
// reports how far it is.
type buildProgress struct {
	out      io.Writer
	packages int // to compile at most: what is in the build cache is not compiled
	started  time.Time

	mutex                sync.Mutex
	downloaded, compiled int
}

// newBuildProgress reports to out. 0 packages stands for a command that compiles nothing.
func newBuildProgress(out io.Writer, packages int) *buildProgress {
	return &buildProgress{out: out, packages: packages}
}

// Write counts modules and packages, which have a line each.
func (p *buildProgress) Write(output []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for line := range bytes.Lines(output) {
		if bytes.HasPrefix(line, []byte("go: downloading ")) {
			p.downloaded++
		} else {
			p.compiled++
		}
	}
	return len(output), nil
}

func (p *buildProgress) String() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	after := time.Since(p.started).Round(time.Second)
	if p.packages == 0 {
		return fmt.Sprintf("  downloaded %d modules after %s", p.downloaded, after)
	}
	return fmt.Sprintf("  compiled %d of %d packages after %s", p.compiled, p.packages, after)
}

// start reports at intervals until the returned function is called, which waits for a
// report under way.
func (p *buildProgress) start() (stop func()) {
	p.started = time.Now()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintln(p.out, p)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
