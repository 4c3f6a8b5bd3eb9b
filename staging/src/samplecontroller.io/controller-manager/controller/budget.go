// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/leadership"
)

// ReasonDeletionsStopped is the reason of a [Failure]: the controller wants to delete more objects within a minute than
// --max-deletions-per-minute allows, and deletes nothing until an operator lets it. See [Shared.AllowDeletions].
const ReasonDeletionsStopped = "DeletionsStopped"

const (
	// budgetWindow is the time in which deletions are counted.
	budgetWindow = time.Minute
	// stoppedRetry is the delay before a stopped deletion is tried again. No event tells when it may.
	stoppedRetry = 30 * time.Second
)

// budget limits the deletions of one controller. It is safe for concurrent use.
type budget struct {
	controller string
	limit      func() int             // per minute; 0: no limit
	term       func() context.Context // the current term, or the last one

	mutex    sync.Mutex
	of       context.Context // the term of all that follows
	sent     []time.Time     // deletions of the last minute, the oldest first
	inFlight int             // deletions whose result is not known
	stopped  time.Time       // since when there are none; zero: not stopped
	count    int             // of the deletions that stopped it
	until    time.Time       // until when there is no limit
}

var (
	// errBudgetInFlight is the error of a deletion that can be judged only when others have ended.
	errBudgetInFlight = errors.New("waiting for the results of other deletions")
	// errNotSent is the result of a deletion that was not sent.
	errNotSent = errors.New("not sent")
)

// begin begins a deletion. The caller calls end with its result, unless begin returns an error.
func (b *budget) begin(ctx context.Context, now time.Time) (end func(error), _ error) {
	limit := b.limit()
	if limit <= 0 {
		return func(error) {}, nil
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.renew(now)
	switch {
	case now.Before(b.until):
		return func(error) {}, nil
	case !b.stopped.IsZero() || len(b.sent) >= limit:
		b.stop(ctx, now)
		return nil, b.why()
	case len(b.sent)+b.inFlight >= limit:
		return nil, errBudgetInFlight
	}
	b.inFlight++
	return func(err error) { b.end(now, err) }, nil
}

// end ends a deletion that began at the given time. One that was refused or rejected does not count. One
// without an answer may have been made.
func (b *budget) end(began time.Time, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.inFlight--
	answer, _ := statusOfError(err)
	if answer.Code/100 == 4 || errors.Is(err, errNotSent) || errors.Is(err, leadership.ErrNotLeading) ||
		errors.Is(err, errSwitchedOff) {
		return
	}
	b.sent = append(b.sent, began)
	slices.SortFunc(b.sent, time.Time.Compare)
}

// renew forgets deletions of more than a minute ago, and all that was in an earlier term.
func (b *budget) renew(now time.Time) {
	if term := b.term(); b.of != term {
		b.of, b.sent, b.stopped, b.until = term, nil, time.Time{}, time.Time{}
	}
	b.sent = slices.DeleteFunc(b.sent, func(t time.Time) bool { return now.Sub(t) >= budgetWindow })
}

func (b *budget) stop(ctx context.Context, now time.Time) {
	if b.stopped.IsZero() {
		b.stopped, b.count = now, len(b.sent)
		klog.FromContext(ctx).Error(b.why(), "Stopped all deletions of the controller")
	}
}

// why returns why there are no deletions.
func (b *budget) why() error {
	return fmt.Errorf("deletions are stopped: %[1]s has deleted %[2]d objects within a minute, as many as "+
		"--max-deletions-per-minute allows; if it is to delete more, run kubectl scm allow-deletions %[1]s, or put "+
		"/debug/deletions/%[1]s of the leader", b.controller, b.count)
}

// state returns why there are no deletions, and since when, or nil.
func (b *budget) state() (why error, since time.Time) {
	if b.limit() <= 0 {
		return nil, time.Time{}
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.renew(time.Now()); b.stopped.IsZero() {
		return nil, time.Time{}
	}
	return b.why(), b.stopped
}

// allow lifts the limit for a time.
func (b *budget) allow(now time.Time, d time.Duration) (until time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.renew(now)
	b.sent, b.stopped, b.until = nil, time.Time{}, now.Add(d)
	return b.until
}

// budgetOf returns the budget of a controller.
func (s *Shared) budgetOf(name string) *budget {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	b := s.budgets[name]
	if b == nil {
		if s.budgets == nil {
			s.budgets = map[string]*budget{}
		}
		b = &budget{controller: name, limit: s.deletionLimit, term: s.Gate.Work}
		s.budgets[name] = b
	}
	return b
}

func (s *Shared) deletionLimit() int {
	if s.MaxDeletionsPerMinute == nil {
		return 0
	}
	return s.MaxDeletionsPerMinute()
}

// AllowDeletions lets a controller delete without a limit for the duration, whether its deletions are
// stopped or not, and returns until when. It ends with the term. Package manager calls it for a PUT of
// /debug/deletions/<controller>.
func (s *Shared) AllowDeletions(name string, d time.Duration) (until time.Time) {
	return s.budgetOf(name).allow(time.Now(), d)
}

// beginDeletion begins a write if it is a deletion, and returns how to end it. If the deletions of the
// controller are stopped, it returns a [Failure].
func (r *Request[T]) beginDeletion(ctx context.Context, w sentWrite) (end func(error), _ error) {
	if w.verb != "delete" {
		return func(error) {}, nil
	}
	end, err := r.builder.context.shared.budgetOf(r.builder.context.name).begin(ctx, time.Now())
	switch {
	case errors.Is(err, errBudgetInFlight):
		return nil, &userError{err: fmt.Errorf("%s: %w", w.write, err), again: firstRetry}
	case err != nil:
		return nil, r.failures.stop(w, err, time.Now())
	}
	return end, nil
}

// stop records that a deletion is stopped, and returns the failure.
func (f *failuresOf) stop(w sentWrite, why error, now time.Time) *Failure {
	known := f.byWrite[w.write]
	if known == nil {
		known = &failing{first: now}
		f.byWrite[w.write] = known
	}
	known.wanted, known.current, known.contents = true, true, w.hash()
	known.last, known.again = now, now.Add(stoppedRetry)
	known.failure = &Failure{
		Reason: ReasonDeletionsStopped, Message: fmt.Sprintf("%s: %v", w.write, why),
		Verb: w.verb, Resource: w.resource, Object: w.object, Since: metav1.NewTime(known.first).Rfc3339Copy(), err: why,
	}
	return known.failure
}
