// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ordering is the order in which a loop takes keys from its queue: what changes comes
// before what can wait, and namespaces take turns.
package ordering

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// LaterShare limits how long keys wait that can: while others are in the queue, one pop in
// LaterShare takes one of them, so that they are never starved.
const LaterShare = 10

// Queue takes first the keys that changes enqueue while workers run, and later those of the
// backlog and those whose sync asked to be called again. The backlog is what the handlers replay
// when a Run begins, the most recently changed first. Nearly all of it was settled long ago, and
// a change that was made while nobody ran the loop must not wait for all of it. Among each of the
// two, namespaces take turns, so that a namespace with thousands of keys delays no other.
//
// The workqueue calls its methods under its own lock.
type Queue struct {
	backlog  *Backlog
	requeued func(cache.ObjectName) bool
	changed  turns
	later    turns                      // with keys that are no longer in waiting
	waiting  sets.Set[cache.ObjectName] // the keys of later
	popped   int
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns a queue without keys. requeued tells whether a key that is added is so only because
// its sync asked for it.
func New(b *Backlog, requeued func(cache.ObjectName) bool) *Queue {
	return &Queue{backlog: b, requeued: requeued, waiting: sets.New[cache.ObjectName]()}
}

// Push implements workqueue.Queue.
func (q *Queue) Push(key cache.ObjectName) {
	if q.backlog.take(key) || q.requeued(key) {
		q.later.push(key)
		q.waiting.Insert(key)
		return
	}
	q.changed.push(key)
}

// Touch implements workqueue.Queue: the key was added again. That changes nothing if its sync asked
// for it.
func (q *Queue) Touch(key cache.ObjectName) {
	if q.waiting.Has(key) && !q.requeued(key) {
		q.waiting.Delete(key)
		q.changed.push(key)
	}
}

// Len implements workqueue.Queue.
func (q *Queue) Len() int { return q.changed.len + len(q.waiting) }

// Pop implements workqueue.Queue.
func (q *Queue) Pop() (key cache.ObjectName) {
	q.popped++
	if q.changed.len > 0 && (len(q.waiting) == 0 || q.popped%LaterShare != 0) {
		return q.changed.pop(func(cache.ObjectName) bool { return true })
	}
	key = q.later.pop(q.waiting.Has)
	q.waiting.Delete(key)
	return key
}

// Backlog holds the keys that are enqueued before the workers start, and then tells the queue
// which these were. It may be used by several goroutines.
type Backlog struct {
	mutex sync.Mutex
	// versions are the newest resourceVersions of objects that enqueued the keys; nil once
	// the keys are released. Versions of different kinds can hardly be compared, but nothing
	// except the order depends on it.
	versions map[cache.ObjectName]string
	keys     sets.Set[cache.ObjectName] // that are on their way into the queue
}

// NewBacklog returns a backlog that holds keys.
func NewBacklog() *Backlog { return &Backlog{versions: map[cache.ObjectName]string{}} }

// Hold keeps a key that an object of a version enqueues, and returns true, until Release.
func (b *Backlog) Hold(key cache.ObjectName, version string) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.versions == nil {
		return false
	}
	if before, ok := b.versions[key]; !ok || newer(version, before) < 0 {
		b.versions[key] = version
	}
	return true
}

// Release adds all keys that were held.
func (b *Backlog) Release(add func(cache.ObjectName)) {
	b.mutex.Lock()
	versions := b.versions
	b.versions, b.keys = nil, sets.KeySet(versions)
	b.mutex.Unlock()
	type held struct {
		key     cache.ObjectName
		version string
	}
	all := make([]held, 0, len(versions)) // to sort without looking up each version many times
	for key, version := range versions {
		all = append(all, held{key, version})
	}
	slices.SortFunc(all, func(x, y held) int { return newer(x.version, y.version) })
	for _, h := range all {
		add(h.key)
	}
}

// take returns, once, whether a key is of the backlog.
func (b *Backlog) take(key cache.ObjectName) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	held := b.keys.Has(key)
	b.keys.Delete(key)
	return held
}

// newer compares numbers without leading zeros, however long: the greater one is first.
func newer(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) }
