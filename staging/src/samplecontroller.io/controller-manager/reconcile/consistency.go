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
	// staleLimit is how long to wait for a stale cache. A watch that is further behind may be
	// broken. Then a write that the API server rejects costs less than a key that waits.
	staleLimit = 30 * time.Second
	// maxStale is how long a key may be postponed. With a ConsistencyStore it takes
	// half a minute at most, unless another controller's sync of the key hangs.
	maxStale = time.Minute
)

// ErrStale is the error of a [SyncFunc] for a cache that is too stale to sync the key. The key
// is synced again when an event enqueues it, or after 100 ms, doubling to 2 s. A key that is
// postponed for longer than a minute counts as failing, and makes its controller unhealthy.
var ErrStale = errors.New("cache is stale")

// VersionedStore is a cache that knows the resourceVersion that it has reached, such as the one that
// GetStore of an informer returns.
type VersionedStore interface {
	// LastStoreSyncResourceVersion returns that resourceVersion, "" if it is not known.
	LastStoreSyncResourceVersion() string
}

// ObjectStore is a cache that is keyed by object name, such as a [cache.Store].
type ObjectStore interface {
	// GetByKey returns the object with the key "namespace/name", or "name" without a namespace.
	GetByKey(key string) (object any, exists bool, err error)
}

// ConsistencyStore lets a controller read its own writes. It remembers, for each key, the
// versions that the caches must reach before the next sync. A sync that reads older versions
// would decide on old state, and would repeat its last write or run into another conflict.
// Pass it to the loop by [WithConsistencyStore], and call [ConsistencyStore.WroteAt] after each
// write and [ConsistencyStore.Conflicted] after each conflict.
//
// Controllers of one process that write the same objects share a ConsistencyStore. So they
// also read each other's writes, and do not conflict with each other.
//
// The zero value is ready to use. Methods are safe for concurrent use.
type ConsistencyStore struct {
	mutex   sync.Mutex
	busy    sets.Set[cache.ObjectName]
	pending map[cache.ObjectName][]awaited
}

// awaited is a condition on a cache, and the time to stop waiting for it.
type awaited struct {
	seen  func() bool
	until time.Time
}

// guard calls sync, unless the sync must wait: then guard returns [ErrStale].
func (c *ConsistencyStore) guard(key cache.ObjectName, sync func() (time.Duration, error)) (time.Duration, error) {
	if !c.begin(key) {
		return 0, ErrStale
	}
	defer c.end(key)
	return sync()
}

// begin reports whether a sync of the key may begin. It must wait while another controller syncs
// the key, or while a cache has not reached the versions remembered for the key, at most staleLimit.
func (c *ConsistencyStore) begin(key cache.ObjectName) bool {
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

// Stale describes what the next sync of the key waits for, such as for a status page. It returns
// "" if the caches are up to date.
func (c *ConsistencyStore) Stale(key cache.ObjectName) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.seen(key) {
		return ""
	}
	return fmt.Sprintf("nothing until the cache contains the last write, or %v have passed", staleLimit)
}

// end ends the sync of a key that begin allowed.
func (c *ConsistencyStore) end(key cache.ObjectName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.busy.Delete(key)
}

// WroteAt remembers that a write for the key returned this resourceVersion. store is the cache
// of the written resource. Syncs of the key wait until it has reached the version, for at most
// 30 s. They do not wait for a version that cannot be compared.
func (c *ConsistencyStore) WroteAt(key cache.ObjectName, store VersionedStore, resourceVersion string) {
	c.await(key, func() bool {
		order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), resourceVersion)
		// Do not wait for versions that cannot be compared.
		return err != nil || order >= 0
	})
}

// Conflicted remembers that a write for the key failed with a conflict, so that the version of
// object that was read from store is outdated. Syncs of the key wait until store has another
// version or no such object, for at most 30 s.
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

// seen reports whether the caches have reached everything remembered for the key, or the wait
// for them has timed out.
func (c *ConsistencyStore) seen(key cache.ObjectName) bool {
	late := slices.DeleteFunc(c.pending[key], func(a awaited) bool { return a.seen() || time.Now().After(a.until) })
	if len(late) > 0 {
		c.pending[key] = late
		return false
	}
	delete(c.pending, key)
	return true
}
