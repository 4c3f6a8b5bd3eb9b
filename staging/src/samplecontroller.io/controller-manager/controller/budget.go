// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/connection"
	"samplecontroller.io/controller-manager/internal/leadership"
)

// ReasonDeletionsStopped is the reason of a [Failure]: the controller wants to delete more objects within a minute than
// --max-deletions-per-minute allows. It deletes nothing until no object needs a deletion any more, or an operator lets
// it go on: see [Shared.AllowDeletions].
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
	off        func() bool            // whether the controller is switched off

	mutex    sync.Mutex
	of       context.Context           // the term of all that follows
	under    int                       // the limit of all that follows
	sent     map[deletion]time.Time    // within the last minute
	inFlight int                       // deletions whose result is not known
	stopped  time.Time                 // since when there are none; zero: not stopped
	count    int                       // of the deletions that stopped it
	waiting  sets.Set[deletionsWaiter] // while it is stopped
	until    time.Time                 // until when there is no limit
}

// deletion is an object that was to be deleted. However often that was tried, it counts once.
type deletion struct {
	write
	uid types.UID
}

// deletionsWaiter is a reconciled object for which deletions are stopped.
type deletionsWaiter struct {
	kind   interface{ reconciles(cache.ObjectName) bool }
	object cache.ObjectName
}

var (
	// errBudgetInFlight is the error of a deletion that can be judged only when others have ended.
	errBudgetInFlight = errors.New("waiting for the results of other deletions")
	// errNotSent is the result of a deletion that was not sent.
	errNotSent = errors.New("not sent")
)

// begin begins a deletion for a reconciled object. The caller calls end with its result, unless begin returns an
// error.
func (b *budget) begin(ctx context.Context, of deletionsWaiter, d deletion, now time.Time) (end func(error), _ error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	limit := b.renew(now)
	_, again := b.sent[d]
	switch {
	case limit <= 0 || now.Before(b.until):
		return func(error) {}, nil
	case !b.stopped.IsZero() || len(b.sent) >= limit && !again:
		b.stop(ctx, of, now)
		return nil, b.why()
	case len(b.sent)+b.inFlight >= limit && !again:
		return nil, errBudgetInFlight
	}
	b.inFlight++
	return func(err error) { b.end(d, now, err) }, nil
}

// end ends a deletion that began at the given time. One that was not sent, or that the API server rejected, does not
// count. One without an answer may have been made, as may one with an error of the API server.
func (b *budget) end(d deletion, began time.Time, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.inFlight--
	answer, _ := statusOfError(err)
	if answer.Code/100 == 4 || errors.Is(err, errNotSent) || errors.Is(err, leadership.ErrNotLeading) ||
		errors.Is(err, errSwitchedOff) || errors.Is(err, connection.ErrNoToken) || utilnet.IsConnectionRefused(err) {
		return
	}
	if b.sent == nil {
		b.sent = map[deletion]time.Time{}
	}
	b.sent[d] = began
}

// renew returns the limit. It forgets deletions of more than a minute ago, all that was in an earlier term, a stop and
// an allowance under another limit, and a stop for objects that are gone.
func (b *budget) renew(now time.Time) (limit int) {
	if term := b.term(); b.of != term {
		b.of, b.sent, b.stopped, b.waiting, b.until = term, nil, time.Time{}, nil, time.Time{}
	}
	if limit = b.limit(); b.under != limit {
		b.under, b.stopped, b.waiting, b.until = limit, time.Time{}, nil, time.Time{}
	}
	for of := range b.waiting {
		if of.kind.reconciles(of.object) {
			break
		}
		b.forget(klog.Background(), of) // which no sync may do: a loop that does not work misses that it is gone
	}
	maps.DeleteFunc(b.sent, func(_ deletion, began time.Time) bool { return now.Sub(began) >= budgetWindow })
	return limit
}

func (b *budget) stop(ctx context.Context, of deletionsWaiter, now time.Time) {
	if b.stopped.IsZero() {
		b.stopped, b.count, b.waiting = now, len(b.sent), sets.New[deletionsWaiter]()
		klog.FromContext(ctx).Error(b.why(), "Stopped all deletions of the controller")
	}
	b.waiting.Insert(of)
}

// wantsNone records that an object wants no deletion.
func (b *budget) wantsNone(ctx context.Context, of deletionsWaiter) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.waiting.Has(of) {
		b.forget(klog.FromContext(ctx), of)
	}
}

// forget removes an object from those that wait. If none is left, for example because a wrong edit was undone, the
// stop ends.
func (b *budget) forget(logger klog.Logger, of deletionsWaiter) {
	if b.waiting.Delete(of); b.waiting.Len() == 0 {
		b.stopped, b.waiting = time.Time{}, nil
		logger.Info("Deletions are no longer stopped: no object needs one", "controller", b.controller)
	}
}

// why returns why there are no deletions.
func (b *budget) why() error {
	return fmt.Errorf("deletions are stopped: %[1]s has deleted %[2]d objects within a minute, as many as "+
		"--max-deletions-per-minute allows; if it is to delete more, send a PUT to /debug/deletions/%[1]s of the leader",
		b.controller, b.count)
}

// state returns why there are no deletions, and since when, or nil.
func (b *budget) state() (why error, since time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.renew(time.Now()); b.stopped.IsZero() || b.off() {
		return nil, time.Time{}
	}
	return b.why(), b.stopped
}

// allow lifts the limit for a time.
func (b *budget) allow(now time.Time, d time.Duration) (until time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.renew(now)
	b.sent, b.stopped, b.waiting, b.until = nil, time.Time{}, nil, now.Add(d)
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
		b = &budget{controller: name, limit: s.deletionLimit, term: s.Gate.Work, off: func() bool { return s.isOff(name) }}
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
	end, err := r.builder.context.budget.begin(ctx, r.waiter(), deletion{w.write, w.uid}, time.Now())
	switch {
	case errors.Is(err, errBudgetInFlight):
		return nil, &userError{err: fmt.Errorf("%s: %w", w.write, err), again: firstRetry}
	case err != nil:
		return nil, r.failures.stop(w, err, time.Now())
	}
	return end, nil
}

func (r *Request[T]) waiter() deletionsWaiter { return deletionsWaiter{r.builder, r.key} }

// waitsForDeletions reports whether a deletion is stopped that the object still needs.
func (f *failuresOf) waitsForDeletions() bool {
	for _, known := range f.byWrite {
		if known.current && known.failure != nil && known.failure.Reason == ReasonDeletionsStopped {
			return true
		}
	}
	return false
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
