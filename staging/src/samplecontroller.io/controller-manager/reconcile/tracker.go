// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// What is remembered of a loop, however long it runs.
const (
	maxRecent   = 100
	maxFailures = 20
)

// Triggers of syncs that no event woke.
const (
	triggerStart   = "start"   // a Run began
	triggerRetry   = "retry"   // the last sync failed, or was put off
	triggerRequeue = "requeue" // the last sync asked for it
)

// tracker keeps the state of a loop's keys. It may be used by several goroutines.
type tracker struct {
	mutex   sync.Mutex
	keys    map[cache.ObjectName]*keyState
	working bool
	since   time.Time
	blocker error

	lastSuccess      time.Time
	lost             int
	recent, failures ring
}

// keyState is that of one key, which is waiting, delayed or being synced.
type keyState struct {
	trigger string
	event   time.Time // the first that no sync has settled; zero: there is none
	waiting time.Time // since when; zero: it is not, unless due
	due     time.Time // when its time comes; zero: never
	running *Entry    // nil: it is not being synced
	retries int
	err     error
}

func newTracker() *tracker {
	return &tracker{since: time.Now(), keys: map[cache.ObjectName]*keyState{}}
}

// work notes that workers begin to take keys.
func (t *tracker) work() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.working, t.since, t.blocker = true, time.Now(), nil
}

// pause notes that no worker takes keys, for a blocker if there is one.
func (t *tracker) pause(blocker error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.working || (t.blocker == nil) != (blocker == nil) {
		t.since = time.Now()
	}
	t.working, t.blocker = false, blocker
	clear(t.keys)
}

// of returns the state of a key, and adds it if there is none.
func (t *tracker) of(key cache.ObjectName) *keyState {
	state := t.keys[key]
	if state == nil {
		state = &keyState{}
		t.keys[key] = state
	}
	return state
}

// enqueue notes what has enqueued a key; event is zero if no event has.
func (t *tracker) enqueue(key cache.ObjectName, trigger string, event time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.of(key)
	if state.waiting.IsZero() {
		state.waiting, state.trigger = time.Now(), trigger
	}
	if state.event.IsZero() {
		state.event = event
	}
}

// requeued tells whether only the last sync of a key asks for the next, and no event.
func (t *tracker) requeued(key cache.ObjectName) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.keys[key]
	return state != nil && state.trigger == triggerRequeue // an event would have replaced it
}

// begin notes that a sync of the key begins, and returns what woke it, and the first
// event that it is to settle.
func (t *tracker) begin(key cache.ObjectName, now time.Time) (trigger string, event time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	state := t.of(key)
	trigger, event = state.trigger, state.event
	if trigger == "" {
		trigger = triggerRetry // that comes although another trigger was faster
	}
	state.running = &Entry{Key: key.String(), Trigger: trigger, Time: now, Retries: state.retries, Error: truncate.Error(state.err)}
	state.trigger, state.event, state.waiting, state.due = "", time.Time{}, time.Time{}, time.Time{}
	return trigger, event
}

// end notes how a sync of the key ended, that the key's time comes after another while
// unless that is 0, and how often it has failed. It returns how long it took to settle
// the event that the sync began with, 0 if there was none or it is not settled.
func (t *tracker) end(key cache.ObjectName, o Outcome, event time.Time, after time.Duration, retries int) (eventToDone time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	now := time.Now()
	state := t.of(key)
	state.running, state.retries, state.err = nil, retries, nil
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
	if o.Result.failed() {
		state.err = o.Err
	}
	switch {
	case !state.waiting.IsZero(): // it was enqueued meanwhile
	case after > 0:
		state.due, state.trigger = now.Add(after), triggerRetry
		if settled {
			state.trigger = triggerRequeue
		}
	default:
		delete(t.keys, key)
	}
	o.EventToDone = eventToDone
	t.recent.add(o, maxRecent)
	if o.Result.failed() {
		t.failures.add(o, maxFailures)
	}
	return eventToDone
}

// lose notes that an event of an object was lost because its handler panicked.
func (t *tracker) lose(object cache.ObjectName, event string, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.lost++
	t.failures.add(Outcome{Key: object.String(), Trigger: event, Result: ResultPanic, Err: err, Error: truncate.Error(err), Began: time.Now()}, maxFailures)
}

// ring holds the last outcomes.
type ring struct {
	outcomes []Outcome
	next     int
}

func (r *ring) add(o Outcome, most int) {
	if len(r.outcomes) < most {
		r.outcomes = append(r.outcomes, o)
		return
	}
	r.outcomes[r.next] = o
	r.next = (r.next + 1) % most
}

// newest returns the newest outcomes of the keys that match, at most limit.
func (r *ring) newest(limit int, matches func(string) bool) []Outcome {
	newest := []Outcome{}
	for i, n := 0, len(r.outcomes); i < n && len(newest) < limit; i++ {
		if o := r.outcomes[(r.next+n-1-i)%n]; matches(o.Key) {
			newest = append(newest, o)
		}
	}
	return newest
}
