// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/reconcile"
)

// confirmations remembers which owners the API server has confirmed in this term: it had the cached
// version of their spec.
//
// The resourceVersion in each write guarantees that the dependent is as cached. But the cache of
// owners may be behind that of dependents, since each has its own watch. A new leader could then take
// what its predecessor did for a newer version of an owner for drift, or create again what was deleted
// with its owner. So an owner is confirmed before the first write for it in a term. If its spec is as
// cached, the cache is as new as anything that former leaders acted on. From then on only this process
// writes, and its cache never goes back.
//
// Each confirmation also returns the API server's current resourceVersion, which is newer than
// anything that former leaders saw. Once the cache of owners has reached it, no more are needed.
type confirmations struct {
	owners   reconcile.VersionedStore // the cache of owners
	mutex    sync.Mutex
	byKey    map[cache.ObjectName]types.UID
	version  string // of the first confirmation in this term; empty before
	caughtUp bool   // the cache has reached version

	// had contains a hash of each owner and dependent that existed at some time in this process. If
	// such a dependent is missing, the garbage collector may have deleted it after its owner, and the
	// cache may see that before it sees the end of the owner.
	had map[uint64]struct{}
	all bool // had was too large and has been dropped
}

// maxHad bounds the memory for dependents that existed, to about 20 MB for each controller. With more,
// each creation is confirmed.
const maxHad = 1 << 20

// begin begins a term.
func (c *confirmations) begin() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.byKey, c.version, c.caughtUp = nil, "", false
}

// has reports whether an owner needs no confirmation.
func (c *confirmations) has(key cache.ObjectName, uid types.UID) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.catchUp() || c.byKey[key] == uid
}

// needed reports whether owners are confirmed at present, because their cache has not caught up.
func (c *confirmations) needed() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.version != "" && !c.catchUp()
}

// catchUp updates and returns caughtUp. The caller holds the mutex.
func (c *confirmations) catchUp() bool {
	if !c.caughtUp && c.version != "" {
		if c.caughtUp = hasReached(c.owners, c.version); c.caughtUp {
			c.byKey = nil
		}
	}
	return c.caughtUp
}

// hasReached reports whether a cache is as new as a version.
func hasReached(store reconcile.VersionedStore, version string) bool {
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), version)
	return err == nil && order >= 0
}

// add records that an owner was confirmed when the API server was at version.
func (c *confirmations) add(key cache.ObjectName, uid types.UID, version string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.version == "" {
		c.version = version
	}
	if c.caughtUp {
		return
	}
	if c.byKey == nil {
		c.byKey = map[cache.ObjectName]types.UID{}
	}
	c.byKey[key] = uid
}

// forget forgets an owner that is gone.
func (c *confirmations) forget(key cache.ObjectName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.byKey, key)
}

// note records that a dependent exists.
func (c *confirmations) note(owner types.UID, dependent string) {
	hash := hashOf(owner, dependent)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.all:
	case len(c.had) == maxHad:
		c.had, c.all = nil, true
	case c.had == nil:
		c.had = map[uint64]struct{}{hash: {}}
	default:
		c.had[hash] = struct{}{}
	}
}

// mayHaveHad reports whether the dependent may have existed.
func (c *confirmations) mayHaveHad(owner types.UID, dependent string) bool {
	hash := hashOf(owner, dependent)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, ok := c.had[hash]
	return ok || c.all
}

var seed = maphash.MakeSeed()

func hashOf(owner types.UID, dependent string) uint64 {
	return maphash.String(seed, string(owner)+" "+dependent)
}

// confirm returns [reconcile.ErrStale] if the spec or the UID of the object differs from the cached
// one, or if it is gone, being deleted or paused. The object is then not reconciled until the cache has caught up.
func (b *Builder[T]) confirm(ctx context.Context, r *Request[T]) error {
	now, found, version, err := b.resource.liveAt(ctx, r.key)
	if err != nil {
		return err
	}
	store := b.resource.informer.GetStore()
	switch {
	case !found || now.GetUID() != r.object.GetUID():
		klog.FromContext(ctx).V(2).Info("Skipping write because the object is gone")
		b.consistency.Conflicted(r.key, store, r.object)
	case sameSpec(now, r.object):
		if err := r.refuse(b.pauseOf(now)); err != nil { // an annotation does not change the generation
			b.consistency.WroteAt(r.key, store, now.GetResourceVersion())
			return err
		}
		b.confirmations.add(r.key, r.object.GetUID(), version)
		return nil
	default:
		klog.FromContext(ctx).V(2).Info("Skipping write because the object has changed since it was cached",
			"resourceVersion", now.GetResourceVersion(), "cachedResourceVersion", r.object.GetResourceVersion())
		b.consistency.WroteAt(r.key, store, now.GetResourceVersion())
	}
	return reconcile.ErrStale
}

// confirmGone returns a conflict if the reconciled object, which the cache lacks, exists.
func (b *Builder[T]) confirmGone(ctx context.Context, r *Request[T]) error {
	live, found, err := b.resource.live(ctx, r.key)
	if err != nil || !found || !b.resource.selector.Matches(labels.Set(live.GetLabels())) {
		return err
	}
	b.consistency.WroteAt(r.key, b.resource.informer.GetStore(), live.GetResourceVersion())
	return b.resource.late(r.key, errors.New("it still exists"))
}

// sameSpec reports whether two versions of an object ask for the same. A kind without a generation
// asks with all of its fields.
func sameSpec(now, cached metav1.Object) bool {
	if now.GetDeletionTimestamp() != nil && cached.GetDeletionTimestamp() == nil {
		return false
	}
	if now.GetGeneration() == 0 {
		return now.GetResourceVersion() == cached.GetResourceVersion()
	}
	return now.GetGeneration() == cached.GetGeneration()
}
