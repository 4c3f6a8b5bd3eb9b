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

// Option changes how a Loop works.
type Option func(*Loop)

// WithWorkers sets how many keys are synced at once. By default it is one.
func WithWorkers(workers int) Option {
	return func(l *Loop) { l.workers = workers }
}

// WithObserver has each outcome passed to observe.
func WithObserver(observe Observer) Option {
	return func(l *Loop) { l.observe = observe }
}

// WithResyncs has updates delivered that do not change the resourceVersion,
// which is what informers with a resync period send. By default they are
// dropped.
func WithResyncs(resyncs bool) Option {
	return func(l *Loop) { l.resyncs = resyncs }
}

// WithQueue names the queue of a loop that is one of several of its controller, so
// that its metrics and log lines are told from theirs. By default it has the
// controller's name.
func WithQueue(name string) Option {
	return func(l *Loop) { l.queue = name }
}

// WithTimeout ends the context of a sync that has taken so long, so that no API
// call can hold it. If it then fails, that is a [ResultTimeout]. 0, the default: it
// does not end.
func WithTimeout(timeout time.Duration) Option {
	return func(l *Loop) { l.timeout = timeout }
}

// WithSources pauses the loop while one of its informers cannot read its API, because the
// API is not there or permission is missing. The loop starts again, with a full resync, when
// the informers have caught up.
func WithSources(sources Sources) Option {
	return func(l *Loop) { l.sources = sources }
}

// WithAdaptiveWorkers lets fewer workers sync at once, but at least two, while many writes
// at a time take long, as they do over a slow link. A write that is given up after the
// write timeout may have been made all the same, and is sent again. The loop knows from
// [RecordWrite] how long writes take. It starts with two workers and adds more while writes
// are fast. A sync that has not begun to write after a tenth of a second does not count.
func WithAdaptiveWorkers(writeTimeout time.Duration) Option {
	return func(l *Loop) { l.limit = &limit{timeout: writeTimeout} }
}

// newRateLimiter backs off each key by itself, from 5 ms doubling to 5
// minutes. There is no limit over all keys: the API server's priority and
// fairness knows better how much it can take.
func newRateLimiter() workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, 5*time.Minute)
}

// Result is how a sync ended.
type Result string

// The results of a sync.
const (
	// ResultSuccess: done, nothing more to do.
	ResultSuccess Result = "success"
	// ResultRequeued: done, and to be called again after a time.
	ResultRequeued Result = "requeued"
	// ResultStale: put off, because the cache was late: [ErrStale].
	ResultStale Result = "stale"
	// ResultConflict: a write was refused because the cache was late.
	ResultConflict Result = "conflict"
	// ResultTimeout: failed after its time was over, to be retried.
	ResultTimeout Result = "timeout"
	// ResultError: failed, to be retried.
	ResultError Result = "error"
	// ResultPanic: panicked, to be retried.
	ResultPanic Result = "panic"
)

// Results returns all results, for whoever prepares a series for each.
func Results() []Result {
	return []Result{ResultSuccess, ResultRequeued, ResultStale, ResultConflict, ResultTimeout, ResultError, ResultPanic}
}

// failed tells whether the sync is to be retried because something is wrong, rather
// than because the cache was late.
func (r Result) failed() bool {
	return r == ResultTimeout || r == ResultError || r == ResultPanic
}

// Outcome is what became of one sync.
type Outcome struct {
	// Controller is the name of the loop.
	Controller string `json:"-"`
	// Key is the namespace and name of the object that was synced.
	Key string `json:"key"`
	// Trigger is what enqueued the key: what happened to which kind, or one of "start",
	// "retry" and "requeue".
	Trigger string `json:"trigger,omitempty"`
	// Began is when the sync began, Duration how long it took.
	Began    time.Time       `json:"began"`
	Duration metav1.Duration `json:"duration"`
	// Result is how the sync ended.
	Result Result `json:"result"`
	// Err is the error of the results stale, conflict, timeout, error and panic, else nil.
	// Error is its text, truncated.
	Err   error  `json:"-"`
	Error string `json:"error,omitempty"`
	// EventToDone is how long it took from the first event that this sync has settled
	// until its end, with all tries; 0 if it has settled none.
	EventToDone time.Duration `json:"-"`
	// Writes are what the sync wrote, as recorded by [RecordWrite].
	Writes []Write `json:"writes,omitempty"`
}

// Observer is called with each outcome, once the next sync of the key is scheduled.
// Several workers call it at once; it must not block.
type Observer func(ctx context.Context, outcome Outcome)
