// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Progress is a snapshot of what a loop is doing. Its JSON form has the content of the queue
// and the last syncs.
type Progress struct {
	// Queue is the name of the loop's queue.
	Queue string `json:"name"`
	// Working is whether workers take keys, and Since when that last changed. Blocker is why
	// the loop is paused: an API that it reads is unavailable.
	Working bool      `json:"-"`
	Since   time.Time `json:"-"`
	Blocker error     `json:"-"`
	// Running are the keys that are being synced, and Waiting those that wait for a worker,
	// both oldest first. Delayed are the keys that are due later, the next one first.
	Running Entries `json:"running"`
	Waiting Entries `json:"waiting"`
	Delayed Entries `json:"delayed"`
	// Postponed are the keys that have been postponed for longer than a minute, oldest first, with
	// the time since when. They are in one of the other lists, too.
	Postponed Entries `json:"-"`
	// Failing is the number of keys whose last sync failed.
	Failing int `json:"failing"`
	// Syncs is the number of syncs that have ended since the process started, and Failed how many of
	// them failed.
	Syncs  int64 `json:"syncs"`
	Failed int64 `json:"failed"`
	// Lost is the number of events lost because their handler panicked.
	Lost int `json:"lostEvents,omitempty"`
	// LastSuccess is when a sync last succeeded, or zero if none has.
	LastSuccess time.Time `json:"lastSuccess,omitzero"`
	// Failures are the last failed syncs, Recent the last syncs of any result, both newest
	// first. They have no Err.
	Failures []Outcome `json:"failures"`
	Recent   []Outcome `json:"recent"`
}

// Entries is a list of running, waiting or delayed keys.
type Entries struct {
	// Total is the number of keys.
	Total int `json:"total"`
	// First are the first keys, at most as many as the limit. It is empty, never nil.
	First []Entry `json:"first"`
}

// Entry is one key in the queue.
type Entry struct {
	// Key is "namespace/name", or "name" without a namespace.
	Key string `json:"key"`
	// Trigger is what enqueued the key, as in an [Outcome].
	Trigger string `json:"trigger,omitempty"`
	// Time is since when the key is running or waiting, or when a delayed key is due.
	Time time.Time `json:"time"`
	// Retries is how often the key has failed in a row. Error is the last error, truncated
	// to 500 bytes.
	Retries int    `json:"retries,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Progress returns a snapshot of the loop, with at most limit keys, syncs and failures in each
// list. It is cheap, but visits every key, and no sync can begin or end until it returns.
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

// ProgressOf returns a snapshot of the loop whose lists contain only the given key. Failing is 1 if
// the key fails.
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

// report returns everything except the keys, with the syncs of the keys that match.
func (t *tracker) report(queue string, limit int, matches func(string) bool) Progress {
	return Progress{
		Queue: queue, Working: t.working, Since: t.since, Blocker: t.blocker,
		Running: Entries{First: []Entry{}}, Postponed: Entries{First: []Entry{}}, Waiting: Entries{First: []Entry{}},
		Delayed:     Entries{First: []Entry{}},
		LastSuccess: t.lastSuccess, Lost: t.lost, Syncs: t.syncs, Failed: t.failed,
		Recent: newest(t.recent, limit, matches), Failures: newest(t.failures, limit, matches),
	}
}

// add adds a key to the lists that it belongs to.
func (p *Progress) add(key cache.ObjectName, state *keyState, limit int, now time.Time) {
	if state.failing {
		p.Failing++
	}
	if state.running != nil {
		p.Running.add(state.running.Time, limit, func() Entry { return *state.running })
	}
	if !state.since.IsZero() && now.Sub(state.since) > maxStale {
		p.Postponed.add(state.since, limit, func() Entry {
			return Entry{Key: key.String(), Time: state.since,
				Error: state.err}
		})
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
		return Entry{Key: key.String(), Trigger: state.trigger, Time: at, Retries: state.retries, Error: state.err}
	})
}

// add counts an entry, and keeps it if it is among the first.
func (e *Entries) add(at time.Time, limit int, entry func() Entry) {
	e.Total++
	if len(e.First) >= limit && (limit == 0 || !at.Before(e.First[limit-1].Time)) {
		return
	}
	i, _ := slices.BinarySearchFunc(e.First, at, func(kept Entry, at time.Time) int { return kept.Time.Compare(at) })
	e.First = slices.Insert(e.First[:min(len(e.First), limit-1)], i, entry())
}
