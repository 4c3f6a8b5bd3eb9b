// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/ordering"
)

// SyncFunc reconciles one object, which may no longer exist. Several workers call it
// concurrently, but a loop never calls it for the same key at the same time.
//
// After a nil error the key is done; if requeueAfter is positive, it is synced again after
// that time. Every error is retried with backoff, from 5 ms to 5 minutes; the delays differ for
// [ErrStale], a forbidden request and [RetryAfter]. So if only a user can fix a problem, write it
// to the object's status and return nil. A panic counts as a [PanicError]. The logger in ctx has
// the name of the controller and the key.
//
// ctx does not end when the loop is stopped, so that a running sync can finish. Therefore each
// of its API calls needs a time limit, for example by [WithTimeout].
type SyncFunc func(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error)

// Loop calls its SyncFunc for the keys that its watches enqueue. Make it with [New], add
// watches with [WatchSelf] and [Watch], then call [Loop.Run].
type Loop struct {
	name      string
	queue     string
	sync      SyncFunc
	watches   []watch
	observers []Observer
	timeout   time.Duration
	sources   Sources
	store     *ConsistencyStore
	tracer    trace.Tracer // nil: no spans
	planner   Planner      // nil: writes are real
	resets    []func()
	tracker   *tracker

	mutex   sync.Mutex
	workers int
	resized chan struct{} // has an element after a change of workers
	add     enqueueFunc   // nil while the loop does not work
}

// watch connects an informer to the queue.
type watch struct {
	informer cache.SharedInformer
	// add adds a handler to the informer.
	add func(ctx context.Context, enqueue enqueueFunc) (cache.ResourceEventHandlerRegistration, error)
}

// enqueueFunc enqueues a key because of an event.
type enqueueFunc func(key cache.ObjectName, trigger string)

// New returns a loop with the name of its controller. It starts nothing, so a loop that is never
// run needs no cleanup. [Loop.Validate] and [Loop.Run] report invalid options.
func New(name string, sync SyncFunc, opts ...Option) *Loop {
	l := &Loop{
		name:    name,
		queue:   name,
		sync:    sync,
		workers: 1,
		resized: make(chan struct{}, 1),
		tracker: newTracker(),
	}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

// Name returns the name of the loop, which is the name of its controller.
func (l *Loop) Name() string { return l.name }

// Queue returns the name of the loop's queue: see [WithQueue].
func (l *Loop) Queue() string { return l.queue }

// Loops returns the loop itself, so that a controller that embeds it reports its progress.
func (l *Loop) Loops() []*Loop { return []*Loop{l} }

// Validate returns an error if the loop can never sync, because it has no workers or no watches.
// Package manager calls it at the start. Run needs only workers: [Loop.Enqueue] enqueues keys, too.
func (l *Loop) Validate() error {
	if workers := l.Workers(); workers < 1 {
		return fmt.Errorf("the loop of %s has %d workers, needs at least 1", l.name, workers)
	}
	if len(l.watches) == 0 {
		return fmt.Errorf("the loop of %s has no watches: call reconcile.WatchSelf or Watch before Run", l.name)
	}
	return nil
}

// Run syncs keys until ctx ends. Then it stops enqueuing keys, lets each worker finish its
// current sync, and returns nil. It returns an error if there are no workers, or if an informer
// takes no event handler, because it has stopped. Run may be called again, but not concurrently.
//
// The loop is paused while an API that its informers read is unavailable: see [WithSources].
func (l *Loop) Run(ctx context.Context) error {
	if l.Workers() < 1 {
		return l.Validate()
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", l.name)
	if l.queue != l.name {
		logger = klog.LoggerWithValues(logger, "queue", l.queue)
	}
	ctx = klog.NewContext(ctx, logger)
	defer l.tracker.pause(nil)
	for ctx.Err() == nil {
		if err := l.workWhileServed(ctx); err != nil {
			return err
		}
	}
	return nil
}

// work syncs keys until ctx ends.
func (l *Loop) work(ctx context.Context) error {
	defer l.tracker.pause(nil) // forget the keys of this queue, even if the next run begins at once
	for _, reset := range l.resets {
		reset()
		defer reset()
	}
	order, rateLimiter := ordering.New(), newRateLimiter()
	queue := newQueue(l.queue, rateLimiter, order)
	defer zeroGauges(l.queue)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer queue.ShutDown()

	enqueue := func(key cache.ObjectName, trigger string) {
		if !order.Hold(key) {
			l.tracker.enqueue(key, trigger, time.Now())
			queue.Add(key)
		}
	}
	synced, removeAll, err := l.register(ctx, enqueue)
	// Remove the handlers before the queue shuts down, so that none adds to a closed queue.
	defer removeAll()
	l.accept(enqueue)
	defer l.accept(nil)
	if err != nil {
		return err
	}

	logger := klog.FromContext(ctx)
	if !cache.WaitFor(klog.NewContext(ctx, logger.V(4)), "informers", synced...) {
		return nil // ctx ended before the workers were started
	}
	logger.Info("Starting workers", "workers", l.Workers())
	defer logger.Info("Stopping workers")
	l.tracker.work()
	worker := &worker{Loop: l, queue: queue, order: order, rateLimiter: rateLimiter}
	worker.start(ctx, &wg)
	// The workers run already, so the first key is synced before the last is added.
	order.Release(func(key cache.ObjectName) {
		l.tracker.enqueue(key, triggerStart, time.Time{})
		queue.Add(key)
	})
	for {
		select {
		case <-l.resized:
			worker.start(ctx, &wg)
		case <-ctx.Done():
			return nil
		}
	}
}

// Workers returns how many keys are synced at once.
func (l *Loop) Workers() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.workers
}

// SetWorkers changes how many keys are synced at once, which must be at least 1, also while the loop runs.
// With less than before, syncs that have begun finish. It is safe for concurrent use.
func (l *Loop) SetWorkers(workers int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.workers = workers
	select {
	case l.resized <- struct{}{}:
	default:
	}
}

// Enqueue enqueues a key because of something that no watch sees; trigger says what, for the status
// pages. While the loop does not work, it does nothing: at its start, a loop reconciles all objects. It
// is safe for concurrent use.
func (l *Loop) Enqueue(key cache.ObjectName, trigger string) {
	l.mutex.Lock()
	defer l.mutex.Unlock() // so that none adds to a closed queue
	if l.add != nil {
		l.add(key, trigger)
	}
}

// accept sets what Enqueue calls.
func (l *Loop) accept(enqueue enqueueFunc) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.add = enqueue
}

// newQueue returns a named queue that returns keys in the given order.
func newQueue(name string, rateLimiter workqueue.TypedRateLimiter[cache.ObjectName],
	order workqueue.Queue[cache.ObjectName]) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(rateLimiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{
				Name:  name,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order}),
			}),
		})
}

// register adds all handlers. The returned function removes those that were added, and waits
// until none of them runs.
func (l *Loop) register(ctx context.Context, enqueue enqueueFunc) ([]cache.DoneChecker, func(), error) {
	var synced []cache.DoneChecker
	var removes []func() error
	removeAll := func() {
		for _, remove := range removes {
			if err := remove(); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to remove event handler")
			}
		}
	}
	for _, watch := range l.watches {
		registration, err := watch.add(ctx, enqueue)
		if err != nil {
			return nil, removeAll, fmt.Errorf("adding an event handler for %s: %w", l.name, err)
		}
		synced = append(synced, watch.informer.HasSyncedChecker(), registration.HasSyncedChecker())
		removes = append(removes, func() error { return cache.ShutDownEventHandler(watch.informer, registration) })
	}
	return synced, removeAll, nil
}
