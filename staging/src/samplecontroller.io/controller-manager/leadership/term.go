// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
)

var (
	// ErrLost is why a term ended whose Lease could not be kept.
	ErrLost = errors.New("leader election lost")
	// errStopped is why a term ended that was asked to.
	errStopped = errors.New("term of leadership ended")
)

// Term is one term of leadership. It ends once, in one of two ways: stopped, when
// the process is asked to end or the work returns, or lost, when the Lease is.
type Term struct {
	// Ctx ends when the term does; [context.Cause] says why.
	Ctx context.Context

	end context.CancelCauseFunc
}

// newTerm begins a term that is stopped when ctx ends.
func newTerm(ctx context.Context) *Term {
	ctx, end := context.WithCancelCause(ctx)
	return &Term{Ctx: ctx, end: end}
}

// Valid returns nil during the term, and afterwards why it has ended.
func (t *Term) Valid() error { return context.Cause(t.Ctx) }

// stop ends the term because its work is to end.
func (t *Term) stop() { t.end(errStopped) }

// lose ends the term because the Lease is lost.
func (t *Term) lose() { t.end(ErrLost) }

// Endless runs lead in a term that only the end of ctx ends: leadership without
// an election, for a process that has no rival.
func Endless(ctx context.Context, lead func(*Term) error) error {
	term := newTerm(ctx)
	defer term.stop()
	return lead(term)
}
