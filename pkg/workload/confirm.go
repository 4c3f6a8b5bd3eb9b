// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/reconcile"
)

// confirmations remembers which objects were confirmed in this term: the API server had
// the cached spec.
//
// The resourceVersion in each write guarantees that the Deployment is as cached. But the
// cache of objects may be behind that of Deployments, since each has its own watch. A new
// leader could then mistake what its predecessor did for a newer version of an object for
// drift, or a renamed Deployment for a missing one. So an object is confirmed before the
// first write for it in a term. If its spec is as cached, the cache is as new as anything
// that former leaders acted on. From then on only this process writes, and its cache never
// goes back.
//
// Each confirmation also returns the API server's current resourceVersion, which is newer
// than anything that former leaders saw. Once the cache has reached it, with the next event
// of any object, no more objects are confirmed. A confirmation can take 0.1 s, because an API
// server that serves it from its cache first waits for that to be current. So until then no
// status write is delayed: the first one causes such an event.
type confirmations struct {
	owners   reconcile.VersionedStore // the cache of objects
	mutex    sync.Mutex
	byKey    map[cache.ObjectName]types.UID
	version  string // of the first confirmation in this term; empty before
	caughtUp bool   // the cache has reached version
}

// begin begins a term and forgets everything.
func (c *confirmations) begin() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.byKey, c.version, c.caughtUp = nil, "", false
}

func (c *confirmations) has(o Owner) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	uid, ok := c.byKey[cache.MetaObjectToName(o)]
	return c.catchUp() || ok && uid == o.GetUID()
}

// needed reports whether objects are confirmed at present, because the cache has not caught up.
func (c *confirmations) needed() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.version != "" && !c.catchUp()
}

// catchUp updates and returns caughtUp. The caller holds the mutex.
func (c *confirmations) catchUp() bool {
	if !c.caughtUp && c.version != "" {
		order, err := resourceversion.CompareResourceVersion(c.owners.LastStoreSyncResourceVersion(), c.version)
		if c.caughtUp = err == nil && order >= 0; c.caughtUp {
			c.byKey = nil
		}
	}
	return c.caughtUp
}

// look records the resourceVersion of a confirmation.
func (c *confirmations) look(version string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.version == "" {
		c.version = version
	}
}

func (c *confirmations) add(o Owner) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.caughtUp {
		return
	}
	if c.byKey == nil {
		c.byKey = map[cache.ObjectName]types.UID{}
	}
	c.byKey[cache.MetaObjectToName(o)] = o.GetUID()
}

// forget forgets an object that is gone.
func (c *confirmations) forget(key cache.ObjectName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.byKey, key)
}

// confirmOwner returns an error if the next write needs a confirmation that fails.
func (k *Reconciler) confirmOwner(ctx context.Context, o Owner, view View, next write) error {
	switch {
	case o.Confirm == nil:
		return nil
	case next.verb == "create":
		// A create overwrites nothing. But the Deployment may be missing because the
		// garbage collector deleted it after its owner. The cache may see that before it
		// sees the change of the owner. So an owner that had a Deployment is confirmed each
		// time. One that, as cached, never had any may have been renamed since.
		if !o.HadDeployment && len(view.Former) == 0 && k.confirmed.has(o) {
			return nil
		}
	case k.confirmed.has(o): // a wrong patch is corrected later
		return nil
	}
	version, err := o.Confirm(ctx)
	k.confirmed.look(version)
	if err != nil {
		return err
	}
	k.confirmed.add(o)
	return nil
}

// confirm returns [reconcile.ErrStale] if the object's spec or UID differs from the cached
// one, or if it is gone or being deleted. The object is then not synced until the cache has
// caught up. The version is the current resourceVersion of the API server, empty if
// unknown.
func (c *Controller[T]) confirm(ctx context.Context, key cache.ObjectName, obj T) (version string, err error) {
	// This is a list of one object, because the list permission is needed anyway.
	found, version, err := c.kind.List(ctx, key.Namespace, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("confirming %s: %w", c.kind.Owner(obj), err)
	}
	for _, now := range found {
		if now.GetName() != key.Name {
			continue
		}
		if now.GetUID() == obj.GetUID() && now.GetGeneration() == obj.GetGeneration() && now.GetDeletionTimestamp() == nil {
			return version, nil
		}
		klog.FromContext(ctx).V(2).Info("Skipping write because the object has changed since it was cached", "generation", now.GetGeneration(), "cachedGeneration", obj.GetGeneration())
		c.consistency.WroteAt(key, c.objects, now.GetResourceVersion())
		return version, reconcile.ErrStale
	}
	klog.FromContext(ctx).V(2).Info("Skipping write because the object is gone")
	c.consistency.Conflicted(key, c.objects, obj)
	return version, reconcile.ErrStale
}
