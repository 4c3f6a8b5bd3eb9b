// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Planner records what the syncs of a process would write whose writes are dry runs. It must be safe for
// concurrent use. Package controller gives its loops one in such a process.
type Planner interface {
	// Begin returns the context of a sync, in which writes are recorded. end must be called with the error of the sync,
	// and with whether the sync is tried again, so that its writes do not count. It returns after how long the sync is
	// to be repeated; 0 means not because of its writes.
	Begin(ctx context.Context, controller, queue, key string) (
		recorded context.Context, end func(again bool, err error) time.Duration)
	// Forget forgets the writes of all keys of a queue. It is called when its loop begins and ends to work.
	Forget(controller, queue string)
}

// WithPlanner makes a loop record the writes of each sync. Its clients must send only dry runs.
func WithPlanner(planner Planner) Option {
	return func(l *Loop) {
		l.planner = planner
		l.resets = append(l.resets, func() { planner.Forget(l.name, l.queue) })
	}
}

// plan returns the context of a sync, and a function that ends its record and returns its requeueAfter.
func (l *Loop) plan(ctx context.Context, key cache.ObjectName) (
	recorded context.Context, end func(requeueAfter time.Duration, err error) time.Duration) {
	if l.planner == nil {
		return ctx, unplanned
	}
	recorded, done := l.planner.Begin(ctx, l.name, l.queue, key.String())
	return recorded, func(requeueAfter time.Duration, err error) time.Duration {
		again := done(isStale(err), err)
		if again > 0 && (requeueAfter <= 0 || again < requeueAfter) {
			return again
		}
		return requeueAfter
	}
}

func unplanned(requeueAfter time.Duration, _ error) time.Duration { return requeueAfter }

// isStale reports whether a sync failed because a cache was stale.
func isStale(err error) bool { return errors.Is(err, ErrStale) || apierrors.IsConflict(err) }

// onceTries is how often [Loop.Once] calls a sync whose caches are stale. That takes 12 seconds.
const onceTries = 10

// onceSyncing is how long [Loop.Once] waits for informers.
const onceSyncing = time.Minute

// Once syncs each object once, with the workers of the loop, and returns. A sync whose caches are stale is tried again
// some times. Failures are only recorded, by the planner: see [WithPlanner]. Once returns an error if an API that the
// loop reads is not available, if an event handler panicked, or if ctx ends first. It must not be called while Run
// runs.
func (l *Loop) Once(ctx context.Context) error {
	if l.planner == nil {
		return fmt.Errorf("the loop of %s has no planner: its writes would be real", l.name)
	}
	if err := l.Validate(); err != nil {
		return err
	}
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "controller", l.name))
	if l.sources != nil {
		var stores []cache.Store
		for _, w := range l.watches {
			stores = append(stores, w.informer.GetStore())
		}
		if err := l.awaitServed(ctx, stores); err != nil {
			return err
		}
	}
	keys, err := l.keys(ctx)
	if err != nil {
		return err
	}
	workqueue.ParallelizeUntil(ctx, l.Workers(), len(keys), func(i int) { l.syncOnce(ctx, keys[i]) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if lost := l.Progress(0).Lost; lost > 0 {
		return fmt.Errorf("%d event handlers panicked", lost)
	}
	return nil
}

// awaitServed waits until all informers are in sync. If an API is missing or denied, it returns an error at once.
func (l *Loop) awaitServed(ctx context.Context, stores []cache.Store) error {
	limit := time.After(onceSyncing)
	for {
		err, changed := l.sources.Served(stores...)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return err
		}
		select {
		case <-changed:
		case <-limit:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keys returns the keys that the loop enqueues when it starts.
func (l *Loop) keys(ctx context.Context) ([]cache.ObjectName, error) {
	var mutex sync.Mutex
	keys := sets.New[cache.ObjectName]()
	synced, removeAll, err := l.register(ctx, func(key cache.ObjectName, _ string) {
		mutex.Lock()
		defer mutex.Unlock()
		keys.Insert(key)
	})
	defer removeAll()
	if err != nil {
		return nil, err
	}
	if !cache.WaitFor(klog.NewContext(ctx, klog.FromContext(ctx).V(4)), "informers", synced...) {
		return nil, context.Cause(ctx)
	}
	mutex.Lock()
	defer mutex.Unlock()
	return keys.UnsortedList(), nil
}

// syncOnce syncs a key until its caches are not stale, or onceTries is reached.
func (l *Loop) syncOnce(ctx context.Context, key cache.ObjectName) {
	w := &worker{Loop: l}
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "key", key))
	for try := 1; ; try++ {
		recorded, end := l.planner.Begin(ctx, l.name, l.queue, key.String())
		_, err := w.syncSafely(recorded, key)
		again := isStale(err) && try < onceTries
		end(again, err)
		if !again {
			return
		}
		select {
		case <-time.After(staleBackoff(try)):
		case <-ctx.Done():
			return
		}
	}
}
