// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ordering is the order in which a loop takes keys from its queue: what changes comes
// before the backlog, and namespaces take turns.
package ordering

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// BacklogShare limits how long the backlog waits: while other keys are in the queue, one pop in
// BacklogShare takes a key of the backlog, so that it is never starved.
const BacklogShare = 10

// Queue takes keys that are enqueued while workers run first, and then the backlog. That is
// what the handlers replay when a Run begins, the most recently changed first. Nearly all of it
// was settled long ago, and a change that was made while nobody ran the loop must not wait for
// all of it. Among each of the two, namespaces take turns, so that a namespace with thousands
// of keys delays no other.
//
// The workqueue calls its methods under its own lock.
type Queue struct {
	backlog *Backlog
	changed turns
	old     turns                      // the backlog, with keys that are no longer in waiting
	waiting sets.Set[cache.ObjectName] // the keys of the backlog
	popped  int
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns a queue without keys.
func New(b *Backlog) *Queue {
	return &Queue{backlog: b, waiting: sets.New[cache.ObjectName]()}
}

// Push implements workqueue.Queue.
func (q *Queue) Push(key cache.ObjectName) {
	if q.backlog.take(key) {
		q.old.push(key)
		q.waiting.Insert(key)
		return
	}
	q.changed.push(key)
}

// Touch implements workqueue.Queue: the key was enqueued again.
func (q *Queue) Touch(key cache.ObjectName) {
	if q.waiting.Has(key) {
		q.waiting.Delete(key)
		q.changed.push(key)
	}
}

// Len implements workqueue.Queue.
func (q *Queue) Len() int { return q.changed.len + len(q.waiting) }

// Pop implements workqueue.Queue.
func (q *Queue) Pop() (key cache.ObjectName) {
	q.popped++
	if q.changed.len > 0 && (len(q.waiting) == 0 || q.popped%BacklogShare != 0) {
		return q.changed.pop(func(cache.ObjectName) bool { return true })
	}
	key = q.old.pop(q.waiting.Has)
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
