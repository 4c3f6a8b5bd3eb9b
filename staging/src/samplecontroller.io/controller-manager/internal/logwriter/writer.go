// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logwriter keeps a log that nobody reads from stopping the goroutines that log.
package logwriter

import (
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the bytes of the lines that wait. As many again may be on
	// their way.
	maxWaiting = 1 << 20
	// gracePeriod is how long Flush and Close wait for a reader, and all writes after Close
	// together.
	gracePeriod = 3 * time.Second
)

// Writer passes lines on to another writer without waiting for it. What does not fit
// into its buffer, or cannot be written, is dropped and counted. It may be used by
// several goroutines. Make it with [New].
//
// It has a goroutine while lines wait, which ends when all are written. If the other
// writer never returns, the goroutine lives as long as the process.
type Writer struct {
	out    io.Writer
	report func(lost uint64)

	mutex   sync.Mutex
	waiting []byte
	lines   uint64        // that wait
	drained chan struct{} // closed when no lines wait any more; nil: none do
	broken  bool          // the last write failed
	lost    uint64        // dropped since the last report
	dropped uint64        // of all time

	deadline  time.Time // of writes after Close; zero: it is open
	reporting bool
}

// New returns a writer that passes lines on to out. It calls report with the number of
// lines that were lost once out takes lines again; report may log.
func New(out io.Writer, report func(lost uint64)) *Writer {
	return &Writer{out: out, report: report}
}

// Write implements io.Writer. p is one line, which may contain line breaks. It returns at
// once and without an error, unless the writer is closed.
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
	if !w.deadline.IsZero() && !w.reporting { // the goroutine that reports would wait for itself
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
			// There is room now, and the batch is what came before the gap.
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

// reportLost reports what was lost since the last report. The mutex is held, but not
// while it reports, which may log.
func (w *Writer) reportLost() {
	lost := w.lost
	w.lost, w.reporting = 0, true
	w.mutex.Unlock()
	w.report(lost)
	w.mutex.Lock()
	w.reporting = false
}

// pass writes a batch. The mutex is held, but not while it writes.
func (w *Writer) pass(batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	w.mutex.Unlock()
	defer w.mutex.Lock()
	_, err := w.out.Write(batch)
	return err
}

// Dropped returns how many lines were lost since the process began.
func (w *Writer) Dropped() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.dropped
}

// Flush waits until all lines are written, but not for longer than 3 s.
func (w *Writer) Flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	deadline := w.deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(gracePeriod)
	}
	w.waitUntil(deadline)
}

// Close does the same before the process ends. Lines can still be written: each Write
// then waits until its line is, but all of them not for longer than these 3 s.
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

// waitUntil waits until no lines wait, or until the deadline. The mutex is held, but not
// while it waits.
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
