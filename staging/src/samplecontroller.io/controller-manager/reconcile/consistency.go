// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

const (
	// staleRetry is after how long a key is looked at again whose caches were
	// late. Usually the late event enqueues it before.
	staleRetry = 100 * time.Millisecond
	// staleLimit is how long caches are waited for. A watch that is further behind
	// may be broken, and then a write that the API server refuses costs less than
	// a key that waits.
	staleLimit = 30 * time.Second
)

// ErrStale is what a [SyncFunc] returns for a key whose caches are late: the key
// is synced again, soon and without backoff.
var ErrStale = errors.New("the cache is late")

// VersionedStore is a cache that knows how far it has come.
type VersionedStore interface {
	LastStoreSyncResourceVersion() string
}

// ObjectStore is a cache by the names of objects: a [cache.Store].
type ObjectStore interface {
	GetByKey(key string) (object any, exists bool, err error)
}

// ConsistencyStore lets a controller read its own writes, and those that it learns of when
// one of its own is refused: it remembers what the caches are to have come to. A
// sync that looked at older versions would decide on what was before, and write it
// again, or be refused again.
//
// Controllers of one process that write to the same objects share one, and so read
// each other's writes too: none is refused for what another has just written.
//
// The zero value is ready to use, by several goroutines.
type ConsistencyStore struct {
	mutex   sync.Mutex
	busy    sets.Set[cache.ObjectName]
	pending map[cache.ObjectName][]awaited
}

// awaited is what a cache is to come to, and how long to wait for it.
type awaited struct {
	seen  func() bool
	until time.Time
}

// EnsureReady tells whether a sync of the key may begin. It may not, and is to return
// [ErrStale], while a cache has not come to what is remembered for the key, unless it
// was waited for long enough, or while another controller syncs it. A sync that may
// begin must [ConsistencyStore.Done].
func (c *ConsistencyStore) EnsureReady(key cache.ObjectName) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.busy.Has(key) || !c.seen(key) {
		return false
	}
	if c.busy == nil {
		c.busy = sets.New[cache.ObjectName]()
	}
	c.busy.Insert(key)
	return true
}

// Stale says for people what the next sync of the key waits for; "" if a cache has come
// to what is remembered for it.
func (c *ConsistencyStore) Stale(key cache.ObjectName) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.seen(key) {
		return ""
	}
	return fmt.Sprintf("nothing until the cache has seen what was last written for it, or %v have passed", staleLimit)
}

// Done ends what a [ConsistencyStore.EnsureReady] of the key that returned true has begun.
func (c *ConsistencyStore) Done(key cache.ObjectName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.busy.Delete(key)
}

// WroteAt remembers that a write for the key returned a resourceVersion of a resource
// that is cached in store.
func (c *ConsistencyStore) WroteAt(key cache.ObjectName, store VersionedStore, resourceVersion string) {
	c.await(key, func() bool {
		order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), resourceVersion)
		// Versions that cannot be compared cannot be waited for.
		return err != nil || order >= 0
	})
}

// Conflicted remembers that a write for the key was refused with a conflict, so that
// the object from store that it was made for is no longer so.
func (c *ConsistencyStore) Conflicted(key cache.ObjectName, store ObjectStore, object metav1.Object) {
	name, version := cache.MetaObjectToName(object).String(), object.GetResourceVersion()
	c.await(key, func() bool {
		cached, exists, err := store.GetByKey(name)
		if err != nil || !exists {
			return true
		}
		now, err := meta.Accessor(cached)
		return err != nil || now.GetResourceVersion() != version
	})
}

func (c *ConsistencyStore) await(key cache.ObjectName, seen func() bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.pending == nil {
		c.pending = map[cache.ObjectName][]awaited{}
	}
	c.pending[key] = append(c.pending[key], awaited{seen, time.Now().Add(staleLimit)})
}

// seen tells whether the caches have come to all that is remembered for the key, or
// were waited for long enough.
func (c *ConsistencyStore) seen(key cache.ObjectName) bool {
	late := slices.DeleteFunc(c.pending[key], func(a awaited) bool { return a.seen() || time.Now().After(a.until) })
	if len(late) > 0 {
		c.pending[key] = late
		return false
	}
	delete(c.pending, key)
	return true
}
