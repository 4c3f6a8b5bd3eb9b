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

// confirmations remembers which objects were found, in this term, to be as the cache has
// them.
//
// That a Deployment is as cached, each write makes sure of by its resourceVersion. But
// the cache of objects may be behind that of Deployments, since each has a watch of its
// own: to a new leader, what the one before has done for a newer version of an object
// would then be drift, or a Deployment that it has renamed away would seem to be missing. So
// an object is looked at before the first write for it in a term. If it is as cached, the cache has come as far as all who led before, and from
// then on only this process writes, from a cache that never goes back. Before a deletion
// it is looked at each time.
//
// Each look tells how far the API server has come, too, which is further than all who led
// before. Once the cache has come to that, with the next event of any object, none is
// looked at any more.
type confirmations struct {
	owners   reconcile.VersionedStore // the cache of objects
	mutex    sync.Mutex
	byKey    map[cache.ObjectName]types.UID
	version  string // that the first look in this term told; empty before
	caughtUp bool   // the cache has come to it
}

// begin forgets all: a term begins.
func (c *confirmations) begin() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.byKey, c.version, c.caughtUp = nil, "", false
}

func (c *confirmations) has(o Owner) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.caughtUp && c.version != "" {
		order, err := resourceversion.CompareResourceVersion(c.owners.LastStoreSyncResourceVersion(), c.version)
		if c.caughtUp = err == nil && order >= 0; c.caughtUp {
			c.byKey = nil
		}
	}
	uid, ok := c.byKey[cache.MetaObjectToName(o)]
	return c.caughtUp || ok && uid == o.GetUID()
}

// look notes which version of all objects a look at one told.
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

// confirmOwner returns an error unless the owner may be relied on for the next write.
func (k *Reconciler) confirmOwner(ctx context.Context, o Owner, view View, next write) error {
	switch {
	case next == write{} || o.Confirm == nil:
		return nil
	case next.verb == "create":
		// That overwrites nothing. But the garbage collector takes a Deployment away
		// once its owner is gone, and whoever led before once the owner names
		// another, and the cache may know of the Deployment before it knows of the
		// owner. So for one that had a Deployment it is confirmed each time. One that,
		// as cached, never had any may have been renamed since.
		if !o.HadDeployment && len(view.Former) == 0 && k.confirmed.has(o) {
			return nil
		}
	case next.verb != "create" && next.verb != "delete" && k.confirmed.has(o):
		// What is written wrongly is written back. A deletion stays, so for that it is
		// confirmed each time: the user may name a former Deployment again.
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

// confirm returns [reconcile.ErrStale] unless the object is as the cache has it, but for
// what asks for nothing, such as its status; it waits then until the cache knows better.
// The version is that of all objects at that time, empty if nothing could be learnt.
func (c *Controller[T]) confirm(ctx context.Context, key cache.ObjectName, obj T) (version string, err error) {
	// To list one is to get it, by a verb that is granted anyway.
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
		klog.FromContext(ctx).V(2).Info("Not writing, the object is no longer as cached", "generation", now.GetGeneration(), "cachedGeneration", obj.GetGeneration())
		c.consistency.WroteAt(key, c.objects, now.GetResourceVersion())
		return version, reconcile.ErrStale
	}
	klog.FromContext(ctx).V(2).Info("Not writing, the object is gone")
	c.consistency.Conflicted(key, c.objects, obj)
	return version, reconcile.ErrStale
}
