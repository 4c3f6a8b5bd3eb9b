// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
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

// Progress is what a loop is at. JSON has what its queue holds and what was done.
type Progress struct {
	// Queue is the name of the loop's queue.
	Queue string `json:"name"`
	// Working says whether workers take keys, Since when that began or ended, and Blocker
	// why they do not: what the loop reads is not served.
	Working bool      `json:"-"`
	Since   time.Time `json:"-"`
	Blocker error     `json:"-"`
	// Running are the keys that are being synced, Waiting those that wait for a worker,
	// the longest first; Delayed are those that wait for their time, the next first.
	Running Entries `json:"running"`
	Waiting Entries `json:"waiting"`
	Delayed Entries `json:"delayed"`
	// Failing is how many keys have failed last.
	Failing int `json:"failing"`
	// Lost is how many events were lost because their handler panicked.
	Lost int `json:"lostEvents,omitempty"`
	// LastSuccess is when a sync last succeeded; zero if none has.
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	// Failures are the last syncs that failed, Recent the last of all, the newest first.
	Failures []Outcome `json:"failures"`
	Recent   []Outcome `json:"recent"`
}

// Entries are keys whose turn has come or will come.
type Entries struct {
	// Total is how many there are.
	Total int `json:"total"`
	// First are as many of them as were asked for.
	First []Entry `json:"first"`
}

// Entry is a key whose turn has come or will come.
type Entry struct {
	Key string `json:"key"` // namespace/name
	// Trigger is what woke it, as in an [Outcome].
	Trigger string `json:"trigger,omitempty"`
	// Time is since when it is being synced or waits for a worker, or when its time
	// comes.
	Time time.Time `json:"time"`
	// Retries is how often it has failed in a row, Error why, truncated.
	Retries int    `json:"retries,omitempty"`
	Error   string `json:"error,omitempty"`
}

// progress keeps account of the keys of a loop. It is asked by several goroutines.
type progress struct {
	mutex   sync.Mutex
	keys    map[cache.ObjectName]*keyState
	working bool
	since   time.Time
	blocker error

	lastSuccess      time.Time
	lost             int
	recent, failures ring
}

// account is that of one key, which is waiting, delayed or being synced.
type keyState struct {
	trigger string
	event   time.Time // the first that no sync has settled; zero: there is none
	waiting time.Time // since when; zero: it is not, unless due
	due     time.Time // when its time comes; zero: never
	running *Entry    // nil: it is not being synced
	retries int
	err     error
}

func newProgress() *progress {
	return &progress{since: time.Now(), keys: map[cache.ObjectName]*keyState{}}
}

// work notes that workers begin to take keys.
func (p *progress) work() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.working, p.since, p.blocker = true, time.Now(), nil
}

// rest notes that no worker takes keys, for a blocker if there is one.
func (p *progress) rest(blocker error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.working || (p.blocker == nil) != (blocker == nil) {
		p.since = time.Now()
	}
	p.working, p.blocker = false, blocker
	clear(p.keys)
}

// of returns the account of a key, which it opens if there is none.
func (p *progress) of(key cache.ObjectName) *keyState {
	a := p.keys[key]
	if a == nil {
		a = &keyState{}
		p.keys[key] = a
	}
	return a
}

// wake notes what has woken a key; event is zero if no event has.
func (p *progress) wake(key cache.ObjectName, trigger string, event time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a := p.of(key)
	if a.waiting.IsZero() {
		a.waiting, a.trigger = time.Now(), trigger
	}
	if a.event.IsZero() {
		a.event = event
	}
}

// begin notes that a sync of the key begins, and returns what woke it, and the first
// event that it is to settle.
func (p *progress) begin(key cache.ObjectName, now time.Time) (trigger string, event time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	a := p.of(key)
	trigger, event = a.trigger, a.event
	if trigger == "" {
		trigger = triggerRetry // that comes although another trigger was faster
	}
	a.running = &Entry{Key: key.String(), Trigger: trigger, Time: now, Retries: a.retries, Error: truncate.Error(a.err)}
	a.trigger, a.event, a.waiting, a.due = "", time.Time{}, time.Time{}, time.Time{}
	return trigger, event
}

// end notes how a sync of the key ended, that the key's time comes after another while
// unless that is 0, and how often it has failed. It returns how long it took to settle
// the event that the sync began with, 0 if there was none or it is not settled.
func (p *progress) end(key cache.ObjectName, o Outcome, event time.Time, after time.Duration, retries int) (eventToDone time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := time.Now()
	a := p.of(key)
	a.running, a.retries, a.err = nil, retries, nil
	settled := o.Result == ResultSuccess || o.Result == ResultRequeued
	switch {
	case settled:
		p.lastSuccess = now
		if !event.IsZero() {
			eventToDone = now.Sub(event)
		}
	case !event.IsZero():
		a.event = event
	}
	if o.Result.failed() {
		a.err = o.Err
	}
	switch {
	case !a.waiting.IsZero(): // it was woken meanwhile
	case after > 0:
		a.due, a.trigger = now.Add(after), triggerRetry
		if settled {
			a.trigger = triggerRequeue
		}
	default:
		delete(p.keys, key)
	}
	o.EventToDone = eventToDone
	p.recent.add(o, maxRecent)
	if o.Result.failed() {
		p.failures.add(o, maxFailures)
	}
	return eventToDone
}

// lose notes that an event of an object was lost because its handler panicked.
func (p *progress) lose(object cache.ObjectName, event string, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.lost++
	p.failures.add(Outcome{Key: object.String(), Trigger: event, Result: ResultPanic, Err: err, Error: truncate.Error(err), Began: time.Now()}, maxFailures)
}

// Progress returns what the loop is at, with at most limit of its keys, syncs and
// failures each. Meanwhile no sync begins or ends, so it costs as little as it can: of
// 10,000 keys it looks once at each.
func (l *Loop) Progress(limit int) Progress {
	p := l.progress
	p.mutex.Lock()
	defer p.mutex.Unlock()
	told := p.tell(l.queue, limit, func(string) bool { return true })
	now := time.Now()
	for key, a := range p.keys {
		told.add(key, a, limit, now)
	}
	return told
}

// ProgressOf returns what the loop is at with one key: nothing else is in the lists.
func (l *Loop) ProgressOf(key cache.ObjectName) Progress {
	p := l.progress
	p.mutex.Lock()
	defer p.mutex.Unlock()
	name := key.String()
	told := p.tell(l.queue, maxRecent, func(another string) bool { return another == name })
	if a := p.keys[key]; a != nil {
		told.add(key, a, 1, time.Now())
	}
	return told
}

// tell tells all but the keys, and of the syncs those of keys that are asked for.
func (p *progress) tell(queue string, limit int, asked func(string) bool) Progress {
	return Progress{
		Queue: queue, Running: Entries{First: []Entry{}}, Waiting: Entries{First: []Entry{}}, Delayed: Entries{First: []Entry{}}, Working: p.working, Since: p.since, Blocker: p.blocker,
		LastSuccess: p.lastSuccess, Lost: p.lost,
		Recent: p.recent.newest(limit, asked), Failures: p.failures.newest(limit, asked),
	}
}

// add adds a key to the lists that it belongs to.
func (p *Progress) add(key cache.ObjectName, a *keyState, limit int, now time.Time) {
	if a.err != nil {
		p.Failing++
	}
	if a.running != nil {
		p.Running.add(a.running.Time, limit, func() Entry { return *a.running })
	}
	at, list := a.waiting, &p.Waiting
	if at.IsZero() {
		if at = a.due; at.IsZero() {
			return
		}
		if at.After(now) {
			list = &p.Delayed
		}
	}
	list.add(at, limit, func() Entry {
		return Entry{Key: key.String(), Trigger: a.trigger, Time: at, Retries: a.retries, Error: truncate.Error(a.err)}
	})
}

// add counts a turn, and keeps it if its time is among the first.
func (t *Entries) add(at time.Time, limit int, turn func() Entry) {
	t.Total++
	if len(t.First) >= limit && (limit == 0 || !at.Before(t.First[limit-1].Time)) {
		return // as most are not, of many
	}
	i, _ := slices.BinarySearchFunc(t.First, at, func(a Entry, at time.Time) int { return a.Time.Compare(at) })
	t.First = slices.Insert(t.First[:min(len(t.First), limit-1)], i, turn())
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

// newest returns the newest outcomes of the keys that are asked for, at most limit.
func (r *ring) newest(limit int, asked func(string) bool) []Outcome {
	newest := []Outcome{}
	for i, n := 0, len(r.outcomes); i < n && len(newest) < limit; i++ {
		if o := r.outcomes[(r.next+n-1-i)%n]; asked(o.Key) {
			newest = append(newest, o)
		}
	}
	return newest
}
