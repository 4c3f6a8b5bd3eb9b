// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// SyncFunc brings one object to where it should be. It is called by several
// workers at once, but never for the same key at the same time.
//
// A nil error settles the key; if requeueAfter is positive it is synced again
// after that time. Any error is retried with backoff, so a mistake that only a
// user can mend is not an error: write it into the object's status and return
// nil. The logger in ctx carries the controller's name and the key.
//
// ctx does not end when the loop is stopped: a sync that has begun is let
// finish, so each of its API calls must be bounded in time, for example by
// [WithTimeout].
type SyncFunc func(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error)

// Loop feeds the keys that its watches wake to its SyncFunc. Make it with
// [New], tell it what to watch with [For] and [Watch], then call [Loop.Run].
type Loop struct {
	name        string
	queue       string
	sync        SyncFunc
	watches     []watch
	rateLimiter func() workqueue.TypedRateLimiter[cache.ObjectName]
	observe     Observer
	resyncs     bool
	timeout     time.Duration
}

// watch adds one handler to one informer and returns what there is to wait for
// and how to take the handler off again.
type watch func(ctx context.Context, wake wakeFunc) (registered, error)

// wakeFunc wakes a key that an object of a resourceVersion concerns.
type wakeFunc func(key cache.ObjectName, version string)

type registered struct {
	synced []cache.DoneChecker
	remove func() error
}

// New returns a loop named after its controller. It allocates only: nothing
// runs, and nothing is to be cleaned up, before [Loop.Run].
func New(name string, sync SyncFunc, opts ...Option) *Loop {
	l := &Loop{
		name:        name,
		queue:       name,
		sync:        sync,
		rateLimiter: DefaultRateLimiter,
		observe:     func(context.Context, Outcome) {},
	}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

// Name returns the name of the loop, which is that of its controller.
func (l *Loop) Name() string { return l.name }

// Run syncs keys with the given number of workers until ctx ends. Then it stops
// waking keys, lets each worker finish the sync that it is in, and returns nil.
// It returns an error only if it could not begin.
func (l *Loop) Run(ctx context.Context, workers int) error {
	if workers < 1 {
		return fmt.Errorf("running %s: %d workers, need at least 1", l.name, workers)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", l.name)
	if l.queue != l.name {
		logger = klog.LoggerWithValues(logger, "queue", l.queue)
	}
	ctx = klog.NewContext(ctx, logger)

	backlog := newBacklog()
	queue := newQueue(l.queue, l.rateLimiter(), newOrder(backlog))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer queue.ShutDown()

	synced, removeAll, err := l.register(ctx, func(key cache.ObjectName, version string) {
		if !backlog.hold(key, version) {
			queue.Add(key)
		}
	})
	// Handlers go before the queue shuts, so that none adds to a closed queue.
	defer removeAll()
	if err != nil {
		return err
	}

	if !cache.WaitFor(klog.NewContext(ctx, logger.V(4)), "informers", synced...) {
		return nil // ctx ended: nothing was started
	}
	logger.Info("Starting workers", "workers", workers)
	defer logger.Info("Stopping workers")
	for range workers {
		wg.Go(func() {
			for l.processNext(ctx, queue) {
			}
		})
	}
	backlog.release(queue.Add) // to workers that wait: the first key is synced before the last is added
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
func (l *Loop) register(ctx context.Context, wake wakeFunc) ([]cache.DoneChecker, func(), error) {
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
		r, err := watch(ctx, wake)
		if err != nil {
			return nil, removeAll, fmt.Errorf("adding event handler of %s: %w", l.name, err)
		}
		synced = append(synced, r.synced...)
		removes = append(removes, r.remove)
	}
	return synced, removeAll, nil
}

// processNext takes one key through one sync. It returns false when the queue
// is shut down.
func (l *Loop) processNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true // the backlog of a loop that is stopping is left to its next Run
	}

	logger := klog.LoggerWithValues(klog.FromContext(ctx), "key", key)
	// A sync that has begun is let finish: cut off in the middle of a write it
	// would not know whether the write was made.
	ctx = klog.NewContext(context.WithoutCancel(ctx), logger)
	start := time.Now()
	requeueAfter, err := l.syncSafely(ctx, key)
	outcome := Outcome{Controller: l.name, Key: key, Err: err, Duration: time.Since(start)}

	switch panicked := (*PanicError)(nil); {
	case errors.As(err, &panicked):
		outcome.Result = ResultPanic
		queue.AddRateLimited(key)
		logger.Error(err, "Sync panicked, retrying with backoff", "retries", queue.NumRequeues(key), "stack", string(panicked.Stack))
	case errors.Is(err, ErrStale):
		outcome.Result = ResultStale
		queue.AddAfter(key, staleRetry)
	case apierrors.IsConflict(err):
		outcome.Result = ResultConflict
		queue.AddRateLimited(key)
		logger.V(2).Info("Sync met a conflict, retrying with backoff", "err", err)
	case errors.Is(err, errTimeout):
		outcome.Result = ResultTimeout
		queue.AddRateLimited(key)
		logger.Error(err, "Sync took too long, retrying with backoff", "timeout", l.timeout, "retries", queue.NumRequeues(key))
	case err != nil:
		outcome.Result = ResultError
		queue.AddRateLimited(key)
		logger.Error(err, "Sync failed, retrying with backoff", "retries", queue.NumRequeues(key))
	case requeueAfter > 0:
		outcome.Result = ResultRequeued
		queue.Forget(key)
		queue.AddAfter(key, requeueAfter)
	default:
		outcome.Result = ResultSuccess
		queue.Forget(key)
	}
	logger.V(4).Info("Synced", "result", outcome.Result, "duration", outcome.Duration)
	l.observe(ctx, outcome)
	return true
}

// syncSafely bounds a sync in time and turns its panic into an error.
func (l *Loop) syncSafely(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error) {
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, l.timeout, errTimeout)
		defer cancel()
	}
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		} else if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
			err = fmt.Errorf("%w: %w", errTimeout, err)
		}
	}()
	return l.sync(ctx, key)
}

// errTimeout is why the context of a sync ended that took too long.
var errTimeout = errors.New("sync timeout")

// PanicError is the error that a recovered panic of a SyncFunc becomes.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }
