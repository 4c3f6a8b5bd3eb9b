// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logwriter keeps an unread log from blocking the goroutines that log.
package logwriter

import (
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting is the maximum size of waiting lines in bytes. As much again may be in
	// the batch being written.
	maxWaiting = 1 << 20
	// gracePeriod is how long Flush waits for a reader.
	gracePeriod = 3 * time.Second
)

// Writer forwards lines to another writer without waiting for it. Lines that do not fit into
// its buffer or cannot be written are dropped and counted. It is safe for concurrent use.
// Create it with [New].
//
// It has a goroutine while lines wait. If the other writer never returns, that goroutine
// lives as long as the process.
type Writer struct {
	out    io.Writer
	report func(lost uint64)

	mutex   sync.Mutex
	waiting []byte
	lines   uint64        // waiting
	drained chan struct{} // closed when no more lines wait; nil if none do
	broken  bool          // the last write failed
	lost    uint64        // dropped since the last report
	dropped uint64        // since the start
}

// New returns a writer that forwards lines to out. When out accepts lines again, it calls
// report with the number of lost lines. report may log.
func New(out io.Writer, report func(lost uint64)) *Writer {
	return &Writer{out: out, report: report}
}

// Write implements io.Writer. p is one line, which may contain line breaks. It never returns
// an error, and does not block.
func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.waiting)+len(p) > maxWaiting {
		w.drop(1)
		return len(p), nil
	}
	w.waiting = append(w.waiting, p...)
	w.lines++
	if w.drained == nil {
		w.drained = make(chan struct{})
		go w.drain()
	}
	return len(p), nil
}

// drop counts lines as lost.
func (w *Writer) drop(lines uint64) {
	w.lost += lines
	w.dropped += lines
}

// drain writes lines until none wait.
func (w *Writer) drain() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.waiting) > 0 || w.lost > 0 && !w.broken {
		batch, lines := w.waiting, w.lines
		w.waiting, w.lines = nil, 0
		if w.lost > 0 && !w.broken {
			// There is room again, and the batch precedes the gap.
			w.reportLost()
		}
		if err := w.pass(batch); err != nil {
			w.broken = true
			w.drop(lines)
		} else {
			w.broken = false
		}
	}
	close(w.drained)
	w.drained = nil
}

// reportLost reports the lines lost since the last report. It unlocks the mutex during the
// report, which may log.
func (w *Writer) reportLost() {
	lost := w.lost
	w.lost = 0
	w.mutex.Unlock()
	defer w.mutex.Lock()
	w.report(lost)
}

// pass writes a batch. It unlocks the mutex during the write.
func (w *Writer) pass(batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	w.mutex.Unlock()
	defer w.mutex.Lock()
	_, err := w.out.Write(batch)
	return err
}

// Dropped returns the number of lines lost since the process started.
func (w *Writer) Dropped() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.dropped
}

// Flush waits until no lines wait, for at most 3 s.
func (w *Writer) Flush() {
	w.mutex.Lock()
	drained := w.drained
	w.mutex.Unlock()
	if drained == nil {
		return
	}
	timer := time.NewTimer(gracePeriod)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
}
