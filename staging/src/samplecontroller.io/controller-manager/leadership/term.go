// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var (
	// ErrLost is why a term ended whose Lease could not be kept.
	ErrLost = errors.New("leader election lost")
	// errStopped is why a term ended that was asked to.
	errStopped = errors.New("term of leadership ended")
)

// Term is one term of leadership. It has two ends. First its work is told to end,
// while it may still write what it has begun; then nothing may be written any
// more. If the Lease is lost, both come at once.
type Term struct {
	// Ctx ends when the work is to end; [context.Cause] says why.
	Ctx context.Context
	end context.CancelCauseFunc

	// open ends when nothing may be written any more.
	open      context.Context
	closeGate context.CancelCauseFunc

	validity time.Duration // after a renewal; 0: for ever
	mutex    sync.Mutex
	deadline time.Time // zero before the first renewal
	timer    *time.Timer
}

// newTerm returns a term whose work is told to end when ctx ends, and which each
// renewal makes valid for that long.
func newTerm(ctx context.Context, validity time.Duration) *Term {
	t := &Term{validity: validity}
	t.Ctx, t.end = context.WithCancelCause(ctx)
	t.open, t.closeGate = context.WithCancelCause(context.WithoutCancel(ctx))
	return t
}

// Valid returns nil while the work of this term may write, also while it drains,
// and afterwards why it may not.
func (t *Term) Valid() error {
	// A process that was suspended may run this before its timer.
	t.expire()
	return context.Cause(t.open)
}

// renewed extends the term after the Lease was acquired or renewed by a request
// that was sent at that time.
func (t *Term) renewed(sent time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.deadline = sent.Add(t.validity)
	if left := time.Until(t.deadline); t.timer == nil {
		t.timer = time.AfterFunc(left, t.expire)
	} else {
		t.timer.Reset(left)
	}
}

// expire loses the term if its time is over.
func (t *Term) expire() {
	t.mutex.Lock()
	expired := !t.deadline.IsZero() && !time.Now().Before(t.deadline)
	t.mutex.Unlock()
	if expired {
		t.lose(fmt.Errorf("the Lease was not renewed for %v", t.validity))
	}
}

// begun reports whether the Lease was acquired for this term.
func (t *Term) begun() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return !t.deadline.IsZero()
}

// lose ends the term because the Lease is lost: before the work learns of it,
// nothing can be written any more.
func (t *Term) lose(why error) {
	err := fmt.Errorf("%w: %w", ErrLost, why)
	t.closeGate(err)
	t.end(err)
}

// over ends the term after its work has returned.
func (t *Term) over() {
	t.closeGate(errStopped)
	t.end(errStopped)
}

// lost returns why the Lease of this term was lost, nil if it was not.
func (t *Term) lost() error {
	if err := context.Cause(t.open); errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// RunWithoutElection runs lead in a term that only the end of ctx ends: leadership without
// an election, for a process that has no rival. gate may be nil.
func RunWithoutElection(ctx context.Context, gate *Gate, lead func(*Term) error) error {
	term := newTerm(ctx, 0)
	defer term.over()
	gate.admit(term)
	return lead(term)
}
