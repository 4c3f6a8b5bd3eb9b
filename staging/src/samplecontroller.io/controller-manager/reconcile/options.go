// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Option changes how a [Loop] works. Of two that set the same, the last one counts.
type Option func(*Loop)

// WithWorkers sets how many keys are synced at once. The default is 1. With less, [Loop.Run] fails.
func WithWorkers(workers int) Option {
	return func(l *Loop) { l.workers = workers }
}

// WithObserver makes the loop call observe with each outcome, after earlier observers.
func WithObserver(observe Observer) Option {
	return func(l *Loop) { l.observers = append(l.observers, observe) }
}

// WithQueue names the queue of one of several loops of a controller, to distinguish their
// metrics and log lines. The default is the name of the controller.
func WithQueue(name string) Option {
	return func(l *Loop) { l.queue = name }
}

// WithTimeout limits the context of each sync, so that no API call can block it forever. A
// sync that fails after the timeout has the result [ResultTimeout]. 0, the default, means no
// limit.
func WithTimeout(timeout time.Duration) Option {
	return func(l *Loop) { l.timeout = timeout }
}

// WithSources pauses the loop while one of its informers cannot read its API, because the API
// is not installed or permission is missing. When the informers have caught up, the loop
// starts again with a full resync.
func WithSources(sources Sources) Option {
	return func(l *Loop) { l.sources = sources }
}

// WithReset makes the loop call reset before its first sync and after its last one, each time that it starts: see
// [WithSources]. While it does not work, it does not see which objects are deleted.
func WithReset(reset func()) Option {
	return func(l *Loop) { l.resets = append(l.resets, reset) }
}

// WithConsistencyStore delays the sync of a key while another loop with this store syncs the key,
// and while a cache has not reached the versions that the store remembers for the key. The key is
// then postponed as after [ErrStale].
func WithConsistencyStore(store *ConsistencyStore) Option {
	return func(l *Loop) { l.store = store }
}

// newRateLimiter returns a rate limiter that backs off each key separately, from 5 ms to 5
// minutes, doubling each time. There is no overall limit: that is left to the API server's
// priority and fairness.
func newRateLimiter() workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, 5*time.Minute)
}

// Result is how a sync ended.
type Result string

// The results of a sync.
const (
	// ResultSuccess means that the sync succeeded.
	ResultSuccess Result = "success"
	// ResultRequeued means that the sync succeeded, and asked to be called again later.
	ResultRequeued Result = "requeued"
	// ResultStale means that the sync was postponed because a cache was stale: [ErrStale].
	ResultStale Result = "stale"
	// ResultConflict means that a write was rejected because the cache was stale. After five
	// failures in a row, the result of a conflict is ResultError: the cause is another one.
	ResultConflict Result = "conflict"
	// ResultTimeout means that the sync failed after its timeout. It is retried.
	ResultTimeout Result = "timeout"
	// ResultError means that the sync failed. It is retried.
	ResultError Result = "error"
	// ResultPanic means that the sync panicked. It is retried.
	ResultPanic Result = "panic"
)

func results() []Result {
	return []Result{ResultSuccess, ResultRequeued, ResultStale, ResultConflict, ResultTimeout, ResultError, ResultPanic}
}

// failed reports whether something is wrong. A stale cache does not count.
func (r Result) failed() bool {
	return r == ResultTimeout || r == ResultError || r == ResultPanic
}

// Outcome describes one finished sync.
type Outcome struct {
	// Controller is the name of the loop.
	Controller string `json:"-"`
	// Key is the namespace and name of the object that was synced.
	Key string `json:"key"`
	// Trigger is what enqueued the key: an event such as "pods changed", or one of "start",
	// "retry" and "requeue".
	Trigger string `json:"trigger,omitempty"`
	// Began is when the sync began. Duration is how long it took.
	Began    time.Time       `json:"began"`
	Duration metav1.Duration `json:"duration"`
	// Result is how the sync ended.
	Result Result `json:"result"`
	// Err is the error, nil for the results success and requeued. Error is its text, truncated
	// to 500 bytes. Answered is whether it is a response of the API server.
	Err      error  `json:"-"`
	Error    string `json:"error,omitempty"`
	Answered bool   `json:"-"`
	// EventToDone is the time from the first event that this sync handled until its end,
	// including earlier attempts. It is 0 if the sync handled no event.
	EventToDone time.Duration `json:"-"`
	// Writes are the first 8 writes of the sync, as recorded by [RecordWrite].
	Writes []Write `json:"writes,omitempty"`
}

// Observer is called with each outcome, after the next sync of the key is scheduled. It is
// called concurrently by several workers, which wait for it, so it must not block or panic.
type Observer func(ctx context.Context, outcome Outcome)
