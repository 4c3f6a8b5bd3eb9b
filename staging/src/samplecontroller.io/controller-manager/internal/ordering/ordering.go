// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ordering defines the order in which a loop takes keys from its queue: changed
// objects precede those that can wait, and namespaces take turns.
package ordering

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// LaterShare keeps keys that can wait from starving: while other keys wait, one pop in
// LaterShare takes one of them.
const LaterShare = 10

// Queue first returns keys that were enqueued by changes while workers run. Keys of the
// backlog and keys requeued by their own sync come later. The backlog is what the event
// handlers replay when a Run begins. Most of it is already in the desired state, so changes
// should not wait for it. Within both groups namespaces take turns, so a namespace with
// thousands of keys does not delay the others.
//
// The workqueue calls its methods under its own lock.
type Queue struct {
	backlog  *Backlog
	requeued func(cache.ObjectName) bool
	changed  turns
	later    turns                      // may contain keys that are no longer in waiting
	waiting  sets.Set[cache.ObjectName] // the keys of later
	popped   int
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns an empty queue. requeued reports whether a key was added only because its sync
// asked for it.
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

// Touch implements workqueue.Queue: the key was added again. It moves a waiting key to the
// changed ones, unless its sync asked for it.
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

// Backlog holds keys that are enqueued before the workers start, and later identifies them to
// the queue. It is safe for concurrent use.
type Backlog struct {
	mutex    sync.Mutex
	released bool
	keys     sets.Set[cache.ObjectName] // held, or released but not yet in the queue
}

// NewBacklog returns an empty backlog that holds keys.
func NewBacklog() *Backlog { return &Backlog{keys: sets.New[cache.ObjectName]()} }

// Hold holds a key. It returns false after Release.
func (b *Backlog) Hold(key cache.ObjectName) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.released {
		b.keys.Insert(key)
	}
	return !b.released
}

// Release adds all held keys.
func (b *Backlog) Release(add func(cache.ObjectName)) {
	b.mutex.Lock()
	b.released = true
	held := b.keys.UnsortedList()
	b.mutex.Unlock()
	for _, key := range held {
		add(key)
	}
}

// take reports whether a key belongs to the backlog, and removes it.
func (b *Backlog) take(key cache.ObjectName) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	held := b.keys.Has(key)
	b.keys.Delete(key)
	return held
}
