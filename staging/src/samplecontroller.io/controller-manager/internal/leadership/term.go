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
	// ErrLost is the cause when a term ends because the Lease could not be kept.
	ErrLost = errors.New("leader election lost")
	// errStopped is the cause when a term ends as requested.
	errStopped = errors.New("term of leadership ended")
)

// Term is one term of leadership. It ends in two steps. First its work is told to end,
// and may still write what it has started, except that a long write is cut off. Then no more
// writes are allowed. If the Lease is lost, both happen at once.
type Term struct {
	// Ctx ends when the work must end; [context.Cause] returns why.
	Ctx context.Context
	end context.CancelCauseFunc

	// open ends when no more writes are allowed.
	open      context.Context
	closeGate context.CancelCauseFunc

	validity time.Duration // after a renewal; 0: forever
	mutex    sync.Mutex
	deadline time.Time // zero before the first renewal
	timer    *time.Timer
}

// newTerm returns a term whose work is told to end when ctx ends. Each renewal makes the
// term valid for the given time.
func newTerm(ctx context.Context, validity time.Duration) *Term {
	t := &Term{validity: validity}
	t.Ctx, t.end = context.WithCancelCause(ctx)
	t.open, t.closeGate = context.WithCancelCause(context.WithoutCancel(ctx))
	return t
}

// Valid returns nil while the work of this term may write, which includes the drain. After
// that it returns why it may not.
func (t *Term) Valid() error {
	// A process that was suspended may run this before its timer fires.
	t.expire()
	return context.Cause(t.open)
}

// renewed extends the term after the Lease was acquired or renewed by a request sent at
// that time.
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

// longestUnbounded is how long a long write may take without an election: as long as the API
// server waits for a webhook at most.
const longestUnbounded = 30 * time.Second

// longest returns how long a long write may take that is sent now. The term is valid until its
// deadline, which is lease - write - margin after its last renewal was sent. A write that is
// sent just then is given up after the write timeout, which is lease - margin after the renewal
// was sent. No other process takes the Lease before lease after that. So until then a long
// write is no different from any other. A renewal in the meantime only adds to the distance.
func (t *Term) longest(writeTimeout time.Duration) time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.deadline.IsZero() {
		return longestUnbounded
	}
	return time.Until(t.deadline) + writeTimeout
}

// expire loses the term if its deadline has passed.
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

// lose ends the term because the Lease is lost. It closes the gate before it tells the
// work.
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

// RunWithoutElection runs lead in a term that ends only with ctx. It is for a process that
// has no rivals. gate may be nil.
func RunWithoutElection(ctx context.Context, gate *Gate, lead func(*Term) error) error {
	term := newTerm(ctx, 0)
	defer term.over()
	gate.admit(term)
	return lead(term)
}
