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
// The methods of workqueue.Queue are called under the lock of the workqueue. The others are safe for concurrent
// use.
type Queue struct {
	changed turns
	later   turns                      // may contain keys that are no longer in waiting
	waiting sets.Set[cache.ObjectName] // the keys of later
	popped  int

	mutex    sync.Mutex
	released bool
	canWait  sets.Set[cache.ObjectName] // keys without a change since the workers, or their last sync, began
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns an empty queue that holds keys.
func New() *Queue {
	return &Queue{waiting: sets.New[cache.ObjectName](), canWait: sets.New[cache.ObjectName]()}
}

// Hold notes an event of a key. Before Release it keeps the key for that, and returns true. After Release the key
// is to be added, and comes before those that can wait.
func (q *Queue) Hold(key cache.ObjectName) (held bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.released {
		q.canWait.Delete(key)
	} else {
		q.canWait.Insert(key)
	}
	return !q.released
}

// Release adds all held keys.
func (q *Queue) Release(add func(cache.ObjectName)) {
	q.mutex.Lock()
	q.released = true
	held := q.canWait.UnsortedList()
	q.mutex.Unlock()
	for _, key := range held {
		add(key)
	}
}

// Synced notes that the sync of a popped key has ended. requeued reports whether the sync asked for another one. That
// can wait, unless an event came since the key was popped.
func (q *Queue) Synced(key cache.ObjectName, requeued bool) {
	if !requeued {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.canWait.Delete(key)
	}
}

// Push implements workqueue.Queue.
func (q *Queue) Push(key cache.ObjectName) {
	if !q.mayWait(key) {
		q.changed.push(key)
		return
	}
	q.later.push(key)
	q.waiting.Insert(key)
}

// Touch implements workqueue.Queue: the key was added again. It moves a waiting key to the
// changed ones, if that was because of an event.
func (q *Queue) Touch(key cache.ObjectName) {
	if q.waiting.Has(key) && !q.mayWait(key) {
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
		key = q.changed.pop(func(cache.ObjectName) bool { return true })
	} else {
		key = q.later.pop(q.waiting.Has)
		q.waiting.Delete(key)
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.canWait.Insert(key) // until the next event
	return key
}

func (q *Queue) mayWait(key cache.ObjectName) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.canWait.Has(key)
}
