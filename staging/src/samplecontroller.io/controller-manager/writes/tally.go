// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxLines bounds a tally: one sync writes little.
const maxLines = 8

// Line is one write.
type Line struct {
	// Verb is that of RBAC, and Resource one such as deployments.apps.
	Verb, Resource string
	// Result is what became of it, empty until it is known.
	Result Result
	// Took is how long it took until the answer was there, or the write was given up; 0 if
	// it was not sent, or failed for another reason.
	Took time.Duration
}

// Tally is what was written with one context. It may be used by several goroutines.
type Tally struct {
	mutex sync.Mutex
	lines []Line
}

type tallyKey struct{}

// WithTally returns a context whose writes are put down, usually that of one sync, and
// where.
func WithTally(ctx context.Context) (context.Context, *Tally) {
	tally := &Tally{}
	return context.WithValue(ctx, tallyKey{}, tally), tally
}

// Lines returns the first 8 writes, in the order in which they began.
func (t *Tally) Lines() []Line {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return slices.Clone(t.lines)
}

// putDown adds a write to the tally of the context, if it has one. The returned function
// completes it.
func putDown(ctx context.Context, verb, resource string) (complete func(Result, time.Duration)) {
	tally, ok := ctx.Value(tallyKey{}).(*Tally)
	if !ok {
		return func(Result, time.Duration) {}
	}
	tally.mutex.Lock()
	defer tally.mutex.Unlock()
	i := len(tally.lines)
	if i == maxLines {
		return func(Result, time.Duration) {}
	}
	tally.lines = append(tally.lines, Line{Verb: verb, Resource: resource})
	return func(result Result, took time.Duration) {
		tally.mutex.Lock()
		defer tally.mutex.Unlock()
		tally.lines[i].Result, tally.lines[i].Took = result, took
	}
}
