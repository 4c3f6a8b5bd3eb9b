// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/internal/truncate"
)

// Progress is what a loop is doing. JSON has what its queue holds and what was done.
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

// Entries are keys of the queue, running or waiting or delayed.
type Entries struct {
	// Total is how many there are.
	Total int `json:"total"`
	// First are as many of them as were asked for.
	First []Entry `json:"first"`
}

// Entry is a key of the queue.
type Entry struct {
	Key string `json:"key"` // namespace/name
	// Trigger is what enqueued it, as in an [Outcome].
	Trigger string `json:"trigger,omitempty"`
	// Time is since when it is being synced or waits for a worker, or when its time
	// comes.
	Time time.Time `json:"time"`
	// Retries is how often it has failed in a row, Error why, truncated.
	Retries int    `json:"retries,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Progress returns what the loop is doing, with at most limit of its keys, syncs and
// failures each. No sync begins or ends until it returns, so it costs little: it looks once
// at each key.
func (l *Loop) Progress(limit int) Progress {
	t := l.tracker
	t.mutex.Lock()
	defer t.mutex.Unlock()
	report := t.report(l.queue, limit, func(string) bool { return true })
	now := time.Now()
	for key, state := range t.keys {
		report.add(key, state, limit, now)
	}
	return report
}

// ProgressOf returns what the loop is doing with one key: nothing else is in the lists.
func (l *Loop) ProgressOf(key cache.ObjectName) Progress {
	t := l.tracker
	t.mutex.Lock()
	defer t.mutex.Unlock()
	name := key.String()
	report := t.report(l.queue, maxRecent, func(another string) bool { return another == name })
	if state := t.keys[key]; state != nil {
		report.add(key, state, 1, time.Now())
	}
	return report
}

// report reports everything except the keys, with the syncs of those keys that match.
func (t *tracker) report(queue string, limit int, matches func(string) bool) Progress {
	return Progress{
		Queue: queue, Working: t.working, Since: t.since, Blocker: t.blocker,
		Running: Entries{First: []Entry{}}, Waiting: Entries{First: []Entry{}}, Delayed: Entries{First: []Entry{}},
		LastSuccess: t.lastSuccess, Lost: t.lost,
		Recent: t.recent.newest(limit, matches), Failures: t.failures.newest(limit, matches),
	}
}

// add adds a key to the lists that it belongs to.
func (p *Progress) add(key cache.ObjectName, state *keyState, limit int, now time.Time) {
	if state.err != nil {
		p.Failing++
	}
	if state.running != nil {
		p.Running.add(state.running.Time, limit, func() Entry { return *state.running })
	}
	at, list := state.waiting, &p.Waiting
	if at.IsZero() {
		if at = state.due; at.IsZero() {
			return
		}
		if at.After(now) {
			list = &p.Delayed
		}
	}
	list.add(at, limit, func() Entry {
		return Entry{Key: key.String(), Trigger: state.trigger, Time: at, Retries: state.retries, Error: truncate.Error(state.err)}
	})
}

// add counts an entry, and keeps it if its time is among the first.
func (e *Entries) add(at time.Time, limit int, entry func() Entry) {
	e.Total++
	if len(e.First) >= limit && (limit == 0 || !at.Before(e.First[limit-1].Time)) {
		return // as most are not, of many
	}
	i, _ := slices.BinarySearchFunc(e.First, at, func(kept Entry, at time.Time) int { return kept.Time.Compare(at) })
	e.First = slices.Insert(e.First[:min(len(e.First), limit-1)], i, entry())
}
