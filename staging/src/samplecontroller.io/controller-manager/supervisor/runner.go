// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/reconcile"
)

// recovered is how long a controller must have run for its next failure to be a
// new one, whose backoff begins at the beginning.
const recovered = 5 * time.Minute

// runner runs one controller.
type runner struct {
	controller controller.Controller
	loops      []*reconcile.Loop // of the controller, if it tells

	mutex  sync.Mutex
	status Status // without what the loops tell
}

func newRunner(c controller.Controller) *runner {
	r := &runner{controller: c, status: Status{Controller: c.Name(), State: Standby, Since: time.Now()}}
	if l, ok := c.(Looper); ok {
		r.loops = l.Loops()
	}
	return r
}

// run runs the controller for one term, again after each failure.
func (r *runner) run(ctx context.Context, options Options) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", r.controller.Name())
	defer r.stopped()
	r.become(ctx, Starting, "")
	if options.StartInterval > 0 && !sleep(ctx, wait.Jitter(options.StartInterval, 1)) {
		return
	}

	backoff := options.Backoff
	for ctx.Err() == nil {
		r.become(ctx, Running, "")
		logger.Info("Starting controller")
		started := time.Now()
		err := r.runOnce(ctx)
		if ctx.Err() != nil {
			if err != nil {
				logger.Error(err, "Controller failed while it was stopped", stackOf(err)...)
			}
			break
		}
		if err == nil {
			err = errors.New("it returned before it was told to stop")
		}
		if time.Since(started) >= recovered {
			backoff = options.Backoff
		}
		delay := backoff.Step()
		r.become(ctx, Degraded, truncate.Error(err))
		logger.Error(err, "Controller failed, starting it again", append(stackOf(err), "after", delay)...)
		sleep(ctx, delay)
	}
	logger.Info("Stopped controller")
}

// runOnce runs the controller once and turns a panic into an error.
func (r *runner) runOnce(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &reconcile.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return r.controller.Run(ctx)
}

// stackOf returns the stack of a panic as a key and a value for the log, of any other
// error nothing.
func stackOf(err error) []any {
	if panicked, ok := errors.AsType[*reconcile.PanicError](err); ok {
		return []any{"stack", string(panicked.Stack)}
	}
	return nil
}

// become notes a new state. Once the term has ended there is only one until the
// controller has stopped.
func (r *runner) become(ctx context.Context, state State, reason string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if ctx.Err() == nil {
		r.set(state, reason)
	}
}

// stopping notes that the term has ended, unless the controller has stopped.
func (r *runner) stopping() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.status.State != Standby {
		r.set(Stopping, "")
	}
}

// stopped notes that nothing of the controller runs any more.
func (r *runner) stopped() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.set(Standby, "")
}

func (r *runner) set(state State, reason string) {
	r.status.State, r.status.Reason, r.status.Since = state, reason, time.Now()
}

// sleep waits for d and returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
