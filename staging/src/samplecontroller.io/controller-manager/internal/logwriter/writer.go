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
	// gracePeriod is how long Flush and Close wait for a reader. It also bounds all writes
	// after Close together.
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

	deadline  time.Time // of writes after Close; zero while open
	reporting bool
}

// New returns a writer that forwards lines to out. When out accepts lines again, it calls
// report with the number of lost lines. report may log.
func New(out io.Writer, report func(lost uint64)) *Writer {
	return &Writer{out: out, report: report}
}

// Write implements io.Writer. p is one line, which may contain line breaks. It never returns
// an error, and does not block unless the writer is closed.
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
	if !w.deadline.IsZero() && !w.reporting { // the reporting goroutine would wait for itself
		w.waitUntil(w.deadline)
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
	w.lost, w.reporting = 0, true
	w.mutex.Unlock()
	w.report(lost)
	w.mutex.Lock()
	w.reporting = false
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

// Flush waits until all lines are written, for at most 3 s.
func (w *Writer) Flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	deadline := w.deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(gracePeriod)
	}
	w.waitUntil(deadline)
}

// Close is like Flush, for the end of the process. Later calls of Write return only when
// their line is written, but together take at most the rest of these 3 s.
func (w *Writer) Close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(gracePeriod)
	}
	w.waitUntil(w.deadline)
}

// Open undoes Close.
func (w *Writer) Open() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.deadline = time.Time{}
}

// waitUntil waits until no lines wait, or until the deadline. It unlocks the mutex while it
// waits.
func (w *Writer) waitUntil(deadline time.Time) {
	drained := w.drained
	if drained == nil {
		return
	}
	w.mutex.Unlock()
	defer w.mutex.Lock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
}
