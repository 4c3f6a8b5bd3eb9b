// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/ordering"
)

// SyncFunc brings one object to where it should be. It is called by several
// workers at once, but never for the same key at the same time.
//
// A nil error settles the key; if requeueAfter is positive it is synced again
// after that time. Any error is retried with backoff, so a mistake that only a
// user can fix is not an error: write it into the object's status and return
// nil. The logger in ctx carries the controller's name and the key.
//
// ctx does not end when the loop is stopped: a sync that has begun is let
// finish, so each of its API calls must be bounded in time, for example by
// [WithTimeout].
type SyncFunc func(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error)

// Loop feeds the keys that its watches enqueue to its SyncFunc. Make it with
// [New], tell it what to watch with [For] and [Watch], then call [Loop.Run].
type Loop struct {
	name    string
	queue   string
	sync    SyncFunc
	watches []watch
	workers int
	observe Observer
	resyncs bool
	timeout time.Duration
	limit   *limit
	sources Sources
	tracker *tracker
}

// watch is one informer that enqueues keys.
type watch struct {
	store cache.Store
	// add adds a handler to the informer and returns what there is to wait for and how
	// to take the handler off again.
	add func(ctx context.Context, enqueue enqueueFunc) (registered, error)
}

// enqueueFunc enqueues a key that an event of an object of a resourceVersion concerns.
type enqueueFunc func(key cache.ObjectName, version, trigger string)

type registered struct {
	synced []cache.DoneChecker
	remove func() error
}

// New returns a loop named after its controller. It allocates only: nothing
// runs, and nothing is to be cleaned up, before [Loop.Run].
func New(name string, sync SyncFunc, opts ...Option) *Loop {
	l := &Loop{
		name:    name,
		queue:   name,
		sync:    sync,
		workers: 1,
		observe: func(context.Context, Outcome) {},
		tracker: newTracker(),
	}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

// Name returns the name of the loop, which is that of its controller.
func (l *Loop) Name() string { return l.name }

// Loops returns the loop, so that a controller that embeds it tells of its progress.
func (l *Loop) Loops() []*Loop { return []*Loop{l} }

// Validate returns an error if the loop would never sync: it watches nothing, or has no
// workers.
func (l *Loop) Validate() error {
	if l.workers < 1 {
		return fmt.Errorf("the loop of %s has %d workers, needs at least 1", l.name, l.workers)
	}
	if len(l.watches) == 0 {
		return fmt.Errorf("the loop of %s watches nothing: call reconcile.For, or Watch, before it is run", l.name)
	}
	return nil
}

// Run syncs keys until ctx ends. Then it stops enqueuing keys, lets each worker finish the sync
// that it is in, and returns nil. It returns an error only if it could not begin.
//
// While an API that its informers read is unavailable, it is paused: see [WithSources].
func (l *Loop) Run(ctx context.Context) error {
	if l.workers < 1 {
		return l.Validate()
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", l.name)
	if l.queue != l.name {
		logger = klog.LoggerWithValues(logger, "queue", l.queue)
	}
	ctx = klog.NewContext(ctx, logger)
	defer l.tracker.pause(nil)
	for {
		served, stop, ok := l.whileServed(ctx)
		if !ok {
			return nil
		}
		err := l.work(served)
		stop()
		if err != nil {
			return err
		}
	}
}

// work syncs keys until ctx ends.
func (l *Loop) work(ctx context.Context) error {
	defer l.tracker.pause(nil) // the keys go with their queue, also if the next begins at once
	backlog := ordering.NewBacklog()
	rateLimiter := newRateLimiter()
	queue := newQueue(l.queue, rateLimiter, ordering.New(backlog, l.tracker.requeued))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer queue.ShutDown()

	synced, removeAll, err := l.register(ctx, func(key cache.ObjectName, version, trigger string) {
		if !backlog.Hold(key, version) {
			l.tracker.enqueue(key, trigger, time.Now())
			queue.Add(key)
		}
	})
	// Handlers go before the queue shuts, so that none adds to a closed queue.
	defer removeAll()
	if err != nil {
		return err
	}

	logger := klog.FromContext(ctx)
	if !cache.WaitFor(klog.NewContext(ctx, logger.V(4)), "informers", synced...) {
		return nil // ctx ended: nothing was started
	}
	logger.Info("Starting workers", "workers", l.workers)
	defer logger.Info("Stopping workers")
	l.tracker.work()
	l.limit.start(l.workers)
	worker := &worker{Loop: l, queue: queue, rateLimiter: rateLimiter}
	for range l.workers {
		wg.Go(func() {
			for worker.processNext(ctx) {
				// A sync that only looks at caches never blocks, and a resync is
				// thousands of them. Without this, who delivers an event would wait
				// for the 10 ms that Go lets a goroutine run on.
				runtime.Gosched()
			}
		})
	}
	// To workers that wait: the first key is synced before the last is added.
	backlog.Release(func(key cache.ObjectName) {
		l.tracker.enqueue(key, triggerStart, time.Time{})
		queue.Add(key)
	})
	<-ctx.Done()
	return nil
}

// newQueue returns a named queue from which keys are taken in an order.
func newQueue(name string, rateLimiter workqueue.TypedRateLimiter[cache.ObjectName], order workqueue.Queue[cache.ObjectName]) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(rateLimiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order}),
		}),
	})
}

// register adds all handlers. The returned function takes off those that were
// added and waits until none of them runs.
func (l *Loop) register(ctx context.Context, enqueue enqueueFunc) ([]cache.DoneChecker, func(), error) {
	var synced []cache.DoneChecker
	var removes []func() error
	removeAll := func() {
		for _, remove := range removes {
			if err := remove(); err != nil {
				klog.FromContext(ctx).Error(err, "Removing event handler")
			}
		}
	}
	for _, watch := range l.watches {
		r, err := watch.add(ctx, enqueue)
		if err != nil {
			return nil, removeAll, fmt.Errorf("adding event handler of %s: %w", l.name, err)
		}
		synced = append(synced, r.synced...)
		removes = append(removes, r.remove)
	}
	return synced, removeAll, nil
}
