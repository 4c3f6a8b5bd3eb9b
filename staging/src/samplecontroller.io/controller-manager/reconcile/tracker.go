// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Limits on the history that a loop keeps.
const (
	maxRecent   = 100
	maxFailures = 20
)

// Triggers of syncs that were not enqueued by an event.
const (
	triggerStart   = "start"   // a Run began
	triggerRetry   = "retry"   // the last sync failed or was postponed
	triggerRequeue = "requeue" // the last sync asked to be called again
)

// tracker tracks the state of a loop's keys. Methods are safe for concurrent use.
type tracker struct {
	mutex   sync.Mutex
	keys    map[cache.ObjectName]*keyState
	working bool
	since   time.Time
	blocker error

	lastSuccess      time.Time
	syncs, failed    int64
	lost             int
	recent, failures []Outcome // the newest last
}

// keyState is the state of a key that is waiting, delayed or being synced.
type keyState struct {
	trigger string
	event   time.Time // first event that no sync has handled; zero: none
	waiting time.Time // since when it waits; zero: not waiting, unless due has passed
	due     time.Time // when it is due; zero: not delayed
	running *Entry    // nil: not being synced
	retries int
	stale   int       // how many syncs in a row were postponed
	since   time.Time // when the first of them was; zero: none
	// Of the last sync, except one that was postponed. The error itself is not kept, because its
	// text may be long.
	err      string // truncated
	failing  bool   // whether err counts as a failure
	timedOut bool   // whether it was a write timeout
}

func newTracker() *tracker {
	return &tracker{since: time.Now(), keys: map[cache.ObjectName]*keyState{}}
}

// work notes that workers take keys.
func (t *tracker) work() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.working, t.since, t.blocker = true, time.Now(), nil
}

// pause notes that no worker takes keys, because of blocker if it is not nil.
func (t *tracker) pause(blocker error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.working || (t.blocker == nil) != (blocker == nil) {
		t.since = time.Now()
	}
	t.working, t.blocker = false, blocker
	clear(t.keys)
}

// stateOf returns the state of a key, and creates it if necessary.
func (t *tracker) stateOf(key cache.ObjectName) *keyState {
	state := t.keys[key]
	if state == nil {
		state = &keyState{}
		t.keys[key] = state
	}
	return state
}

// enqueue notes that a key was enqueued. event is the time of the event, or zero.
func (t *tracker) enqueue(key cache.ObjectName, trigger string, event time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.stateOf(key)
	if state.waiting.IsZero() {
		state.waiting, state.trigger = time.Now(), trigger
	}
	if state.event.IsZero() {
		state.event = event
	}
}

// begin notes that a sync of the key begins. It returns what enqueued the key, when, the time of
// the first unhandled event, and whether a write of the last sync timed out.
func (t *tracker) begin(key cache.ObjectName, now time.Time) (trigger string, enqueued, event time.Time,
	timedOut bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.stateOf(key)
	trigger, enqueued, event = state.trigger, state.waiting, state.event
	if trigger == "" {
		trigger = triggerRetry // an event already triggered a sync; this is the leftover retry
	}
	state.running = &Entry{Key: key.String(), Trigger: trigger, Time: now, Retries: state.retries, Error: state.err}
	state.trigger, state.event, state.waiting, state.due = "", time.Time{}, time.Time{}, time.Time{}
	return trigger, enqueued, event, state.timedOut
}

// postpone notes that a sync of the key was postponed, and returns how many were in a row, and
// since when.
func (t *tracker) postpone(key cache.ObjectName) (times int, since time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.stateOf(key)
	if state.stale++; state.stale == 1 {
		state.since = time.Now()
	}
	return state.stale, state.since
}

// end notes the outcome of a sync of the key, after how long the key is due again (0: never),
// and how often it has failed in a row. event is the event that begin returned. end returns
// the time since that event if the sync handled it, otherwise 0.
func (t *tracker) end(key cache.ObjectName, o Outcome, event time.Time, after time.Duration,
	retries int) (eventToDone time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	state := t.stateOf(key)
	state.running, state.retries = nil, retries
	if !errors.Is(o.Err, ErrStale) {
		state.stale, state.since = 0, time.Time{}
	}
	if o.Result != ResultStale {
		state.err, state.failing, state.timedOut = o.Error, o.Result.failed(), IsWriteTimeout(o.Err)
	}
	settled := o.Result == ResultSuccess || o.Result == ResultRequeued
	switch {
	case settled:
		t.lastSuccess = now
		if !event.IsZero() {
			eventToDone = now.Sub(event)
		}
	case !event.IsZero():
		state.event = event
	}
	switch {
	case !state.waiting.IsZero(): // enqueued during the sync
	case after > 0:
		state.due, state.trigger = now.Add(after), triggerRetry
		if settled {
			state.trigger = triggerRequeue
		}
	default:
		delete(t.keys, key)
	}
	t.syncs++
	o.EventToDone, o.Err = eventToDone, nil
	t.recent = keepLast(t.recent, o, maxRecent)
	if o.Result.failed() {
		t.failed++
		t.failures = keepLast(t.failures, o, maxFailures)
	}
	return eventToDone
}

// lose notes that an event was lost because its handler panicked.
func (t *tracker) lose(object cache.ObjectName, event string, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.lost++
	t.failures = keepLast(t.failures, Outcome{Key: object.String(), Trigger: event, Result: ResultPanic,
		Error: truncate.Error(err), Began: time.Now()}, maxFailures)
}

// newest returns the newest outcomes of matching keys, at most limit.
func newest(outcomes []Outcome, limit int, matches func(string) bool) []Outcome {
	found := []Outcome{}
	for _, o := range slices.Backward(outcomes) {
		if len(found) < limit && matches(o.Key) {
			found = append(found, o)
		}
	}
	return found
}

// keepLast appends an outcome, and drops the oldest if there are more than most.
func keepLast(outcomes []Outcome, o Outcome, most int) []Outcome {
	if len(outcomes) == most {
		outcomes = slices.Delete(outcomes, 0, 1)
	}
	return append(outcomes, o)
}
