// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/ordering"
	"samplecontroller.io/controller-manager/internal/truncate"
)

// worker syncs keys. Several goroutines share one worker.
type worker struct {
	*Loop
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	order       *ordering.Queue
	rateLimiter workqueue.TypedRateLimiter[cache.ObjectName]
	running     int // goroutines; guarded by the mutex of the loop
}

// start starts the goroutines that are missing.
func (w *worker) start(ctx context.Context, wg *sync.WaitGroup) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for ; w.running < w.workers; w.running++ {
		wg.Go(func() {
			for w.processNext(ctx) {
				// A sync that only reads caches never blocks, and a resync runs thousands of
				// them. Without yielding, event delivery would wait up to 10 ms, the time
				// slice that Go gives a goroutine.
				runtime.Gosched()
			}
		})
	}
}

// ends reports whether a goroutine must end, because there are more than workers.
func (w *worker) ends() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.running <= w.workers {
		return false
	}
	w.running--
	return true
}

// processNext syncs one key. It returns false when the queue is shut down, or the goroutine must end.
func (w *worker) processNext(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	if w.ends() {
		w.queue.Add(key) // for another goroutine, after Done
		return false
	}
	if ctx.Err() != nil {
		return true // leave the backlog to the next Run
	}

	logger := klog.LoggerWithValues(klog.FromContext(ctx), "key", key)
	// A sync that has begun may finish: if it were cut off during a write, it would not know
	// whether the write succeeded.
	ctx = klog.NewContext(context.WithoutCancel(ctx), logger)
	start := time.Now()
	trigger, enqueued, event, timedOut := w.tracker.begin(key, start)
	traced, span := w.startSpan(ctx, key, trigger, enqueued, start)
	recorded, written := WithRecorder(traced)
	if timedOut {
		recorded = WithLongWrite(recorded)
	}
	recorded, endPlan := w.plan(recorded, key)
	requeueAfter, err := w.syncSafely(recorded, key)
	if errors.Is(err, ErrStale) {
		requeueAfter, err = w.postpone(key, err)
	}
	requeueAfter = endPlan(requeueAfter, err)
	outcome := Outcome{
		Controller: w.name, Key: key.String(), Trigger: trigger, Began: start,
		Duration: metav1.Duration{Duration: time.Since(start)},
		Result:   w.resultOf(key, requeueAfter, err), Err: err, Error: truncate.Error(err), Answered: isAnswer(err),
		Writes: written(),
	}
	w.order.Synced(key, outcome.Result == ResultRequeued)
	after := w.next(key, outcome, requeueAfter)
	outcome.EventToDone = w.tracker.end(key, outcome, event, after, w.queue.NumRequeues(key))
	endSpan(span, outcome.Result, after)
	w.log(logger, outcome, w.queue.NumRequeues(key))
	for _, observe := range w.observers {
		observe(ctx, outcome)
	}
	return true
}

// maxConflicts is the number of failures in a row after which a conflict is not due to a stale
// cache. Other causes are a field manager that owns a field, and a precondition that never holds.
const maxConflicts = 5

// resultOf returns the result for the return values of a sync of the key.
func (w *worker) resultOf(key cache.ObjectName, requeueAfter time.Duration, err error) Result {
	if err == nil {
		if requeueAfter > 0 {
			return ResultRequeued
		}
		return ResultSuccess
	}
	panicked := (*PanicError)(nil)
	switch {
	case errors.As(err, &panicked):
		return ResultPanic
	case errors.Is(err, errTooStale):
		return ResultError
	case errors.Is(err, ErrStale):
		return ResultStale
	case apierrors.IsConflict(err) && w.queue.NumRequeues(key) < maxConflicts:
		return ResultConflict
	case errors.Is(err, errTimeout):
		return ResultTimeout
	default:
		return ResultError
	}
}

// isAnswer reports whether an error is a response of the API server.
func isAnswer(err error) bool {
	answer := apierrors.APIStatus(nil)
	return errors.As(err, &answer)
}

// next enqueues the key again if necessary, and returns after how long; 0 means not at all.
func (w *worker) next(key cache.ObjectName, o Outcome, requeueAfter time.Duration) (after time.Duration) {
	switch o.Result {
	case ResultSuccess:
		w.queue.Forget(key)
		return 0
	case ResultRequeued:
		w.queue.Forget(key)
		after = requeueAfter
	case ResultStale:
		after = requeueAfter
	default:
		after = w.rateLimiter.When(key)
		later, isLater := errors.AsType[*retryAfter](o.Err)
		switch {
		case isLater:
			after = later.delay
		case apierrors.IsForbidden(o.Err):
			after = forbiddenBackoff(w.queue.NumRequeues(key))
		case errors.Is(o.Err, errTooStale):
			after = max(after, requeueAfter)
		}
	}
	w.queue.AddAfter(key, after)
	return after
}

// errTooStale is wrapped by the error of a key that has been postponed for too long.
var errTooStale = fmt.Errorf("postponed for more than %v, because a watch is behind or another sync of the object hangs", maxStale)

// postpone returns when to sync the key again, and the error of the sync that was postponed.
func (w *worker) postpone(key cache.ObjectName, err error) (time.Duration, error) {
	times, since := w.tracker.postpone(key)
	if time.Since(since) > maxStale {
		err = fmt.Errorf("%w: %w", errTooStale, err)
	}
	return staleBackoff(times), err
}

// staleBackoff returns the delay before the next sync of a key after this many in a row that
// were postponed. Usually the missing event enqueues the key earlier. While a watch lags, many
// keys may wait.
func staleBackoff(postponed int) time.Duration {
	return min(100*time.Millisecond<<min(postponed-1, 5), 2*time.Second)
}

// forbiddenBackoff returns the backoff after this many failures, if the last request was
// forbidden. It starts high, because usually many other objects are affected too. It stays
// short, because no event tells when the permission is granted.
func forbiddenBackoff(failures int) time.Duration {
	return min(time.Second<<min(max(failures, 1)-1, 5), 30*time.Second)
}

// log logs the outcome of a sync.
func (w *worker) log(logger klog.Logger, o Outcome, retries int) {
	failed := func(message string, values ...any) {
		logger.Error(o.Err, message, append(values, "retries", retries)...)
	}
	switch o.Result {
	case ResultPanic:
		panicked := (*PanicError)(nil)
		errors.As(o.Err, &panicked)
		failed("Sync panicked, retrying with backoff", "stack", string(panicked.Stack))
	case ResultConflict:
		logger.V(2).Info("Sync hit a conflict, retrying with backoff", "err", o.Err)
	case ResultTimeout:
		failed("Sync took too long, retrying with backoff", "timeout", w.timeout)
	case ResultError:
		logged := (*loggedError)(nil)
		switch {
		case errors.As(o.Err, &logged):
			logger.V(2).Info("Sync failed, retrying with backoff", "err", o.Err, "retries", retries)
		case apierrors.IsForbidden(o.Err):
			// Usually many objects are affected. Package writes logs the missing permission
			// once.
			logger.V(2).Info("Sync was forbidden, retrying with backoff", "err", o.Err, "retries", retries)
		default:
			failed("Sync failed, retrying with backoff")
		}
	}
	if logger := logger.V(4); logger.Enabled() { // avoids boxing the values otherwise
		logger.Info("Synced", "trigger", o.Trigger, "result", o.Result, "duration", o.Duration.Duration)
	}
}

// Logged marks an error that the sync function has logged itself, for example only the first
// time. It is retried like any other error, but logged only at verbosity 2. It returns nil if err
// is nil.
func Logged(err error) error {
	if err == nil {
		return nil
	}
	return &loggedError{err}
}

// RetryAfter marks an error whose key is retried after d, which must be positive, instead of with the
// backoff of the loop. Use it for an outage of an external system, which more tries do not end sooner.
// It counts as a failure. RetryAfter returns nil if err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, d}
}

type retryAfter struct {
	error
	delay time.Duration
}

func (e *retryAfter) Unwrap() error { return e.error }

type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// syncSafely runs a sync with the timeout, and turns a panic into an error.
func (w *worker) syncSafely(ctx context.Context, key cache.ObjectName) (requeueAfter time.Duration, err error) {
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, errTimeout)
		defer cancel()
	}
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		} else if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
			err = fmt.Errorf("%w: %w", errTimeout, err)
		}
	}()
	if w.store != nil {
		return w.store.guard(key, func() (time.Duration, error) { return w.sync(ctx, key) })
	}
	return w.sync(ctx, key)
}

// errTimeout is the cause of the end of a context that has timed out.
var errTimeout = errors.New("sync timeout")

// PanicError is the error for a panic of a [SyncFunc], an event handler or a constructor of a
// controller.
type PanicError struct {
	// Value is the value passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked, as text.
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }
