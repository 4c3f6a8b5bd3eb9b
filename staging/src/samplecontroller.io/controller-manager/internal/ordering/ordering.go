// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// backlogShare is of how many keys one is of the backlog while others wait: what keeps
// changing must not keep the backlog waiting for ever.
const backlogShare = 10

// order is the order in which keys are taken from a queue: first what is woken while
// workers run, as it comes, then the backlog. That is what the handlers replay when a
// Run begins, the most recently changed first. Nearly all of it was settled long ago,
// and what has changed while nobody ran the loop must not wait until all that is seen.
//
// Its methods are called by the queue, under the queue's lock.
type order struct {
	backlog *backlog
	woken   []cache.ObjectName
	old     []cache.ObjectName // in its order, with what is waiting no longer
	waiting sets.Set[cache.ObjectName]
	popped  int
}

var _ workqueue.Queue[cache.ObjectName] = &order{}

func newOrder(b *backlog) *order {
	return &order{backlog: b, waiting: sets.New[cache.ObjectName]()}
}

// Push implements workqueue.Queue.
func (o *order) Push(key cache.ObjectName) {
	if o.backlog.take(key) {
		o.old = append(o.old, key)
		o.waiting.Insert(key)
		return
	}
	o.woken = append(o.woken, key)
}

// Touch implements workqueue.Queue: the key was woken again.
func (o *order) Touch(key cache.ObjectName) {
	if o.waiting.Has(key) {
		o.waiting.Delete(key)
		o.woken = append(o.woken, key)
	}
}

// Len implements workqueue.Queue.
func (o *order) Len() int { return len(o.woken) + len(o.waiting) }

// Pop implements workqueue.Queue.
func (o *order) Pop() (key cache.ObjectName) {
	o.popped++
	if len(o.woken) > 0 && (len(o.waiting) == 0 || o.popped%backlogShare != 0) {
		return shift(&o.woken)
	}
	key = shift(&o.old)
	for !o.waiting.Has(key) {
		key = shift(&o.old)
	}
	o.waiting.Delete(key)
	return key
}

func shift(keys *[]cache.ObjectName) cache.ObjectName {
	first := (*keys)[0]
	(*keys)[0] = cache.ObjectName{} // the array beneath lives on
	*keys = (*keys)[1:]
	return first
}

// backlog holds the keys that are woken before the workers start, and then tells the
// order which these were.
type backlog struct {
	mutex sync.Mutex
	// versions are the newest resourceVersions that the keys were woken by; nil once
	// they are released. Those of other kinds can hardly be compared, but nothing
	// depends on it: it is only an order.
	versions map[cache.ObjectName]string
	keys     sets.Set[cache.ObjectName] // that are on their way into the queue
}

func newBacklog() *backlog { return &backlog{versions: map[cache.ObjectName]string{}} }

// hold keeps a key that is woken by an object of a version, until the release.
func (b *backlog) hold(key cache.ObjectName, version string) bool {
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

// release adds all that was held.
func (b *backlog) release(add func(cache.ObjectName)) {
	b.mutex.Lock()
	versions := b.versions
	b.versions, b.keys = nil, sets.KeySet(versions)
	b.mutex.Unlock()
	type held struct {
		key     cache.ObjectName
		version string
	}
	all := make([]held, 0, len(versions))
	for key, version := range versions {
		all = append(all, held{key, version})
	}
	slices.SortFunc(all, func(x, y held) int { return newer(x.version, y.version) })
	for _, h := range all {
		add(h.key)
	}
}

// take tells, once, whether a key is of the backlog.
func (b *backlog) take(key cache.ObjectName) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	held := b.keys.Has(key)
	b.keys.Delete(key)
	return held
}

// newer compares numbers without leading zeros, however long: the greater one is first.
func newer(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) }
