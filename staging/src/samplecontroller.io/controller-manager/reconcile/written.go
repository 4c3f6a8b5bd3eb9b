// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

const (
	// staleRetry is after how long a key is looked at again whose caches were
	// late. Usually the late event wakes it before.
	staleRetry = 100 * time.Millisecond
	// staleLimit is how long caches are waited for. A watch that is further behind
	// may be broken, and then a write that the API server refuses costs less than
	// a key that rests.
	staleLimit = 30 * time.Second
)

// ErrStale is what a [SyncFunc] returns for a key whose caches are late: the key
// is synced again, soon and without backoff.
var ErrStale = errors.New("the cache has not yet seen the last write")

// VersionedStore is a cache that knows how far it has come.
type VersionedStore interface {
	LastStoreSyncResourceVersion() string
}

// Written lets a controller read its own writes: it remembers the versions that
// the writes for a key returned until the caches have come as far. A sync that
// looked at older ones would decide on what was before, and write it again.
//
// The zero value is ready to use, by several goroutines.
type Written struct {
	mutex   sync.Mutex
	pending map[cache.ObjectName][]written
}

type written struct {
	store           VersionedStore
	resourceVersion string
	until           time.Time
}

// Note remembers that a write for the key returned a resourceVersion of a resource
// that is cached in store.
func (w *Written) Note(key cache.ObjectName, store VersionedStore, resourceVersion string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.pending == nil {
		w.pending = map[cache.ObjectName][]written{}
	}
	w.pending[key] = append(w.pending[key], written{store, resourceVersion, time.Now().Add(staleLimit)})
}

// Seen tells whether the caches have seen all writes for the key, or were waited
// for long enough.
func (w *Written) Seen(key cache.ObjectName) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	late := slices.DeleteFunc(w.pending[key], written.seen)
	if len(late) > 0 {
		w.pending[key] = late
		return false
	}
	delete(w.pending, key)
	return true
}

func (w written) seen() bool {
	order, err := resourceversion.CompareResourceVersion(w.store.LastStoreSyncResourceVersion(), w.resourceVersion)
	// Versions that cannot be compared cannot be waited for.
	return err != nil || order >= 0 || time.Now().After(w.until)
}
