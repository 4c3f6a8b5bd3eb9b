// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/truncate"
	"samplecontroller.io/controller-manager/reconcile"
)

// recovered is how long a controller must run without failure for its backoff to reset.
const recovered = 5 * time.Minute

// runner runs one controller.
type runner struct {
	controller controller.Controller
	loops      []*reconcile.Loop // of the controller, if it is a Looper

	mutex  sync.Mutex
	status Status             // without the state of the loops
	on     bool               // whether it is to run during terms
	turned chan struct{}      // closed when on changes
	end    context.CancelFunc // ends the present run; nil if there is none
}

func newRunner(c controller.Controller, on bool) *runner {
	r := &runner{controller: c, on: on, turned: make(chan struct{}), status: Status{Controller: c.Name()}}
	r.set(r.idle(), "")
	if l, ok := c.(Looper); ok {
		r.loops = l.Loops()
	}
	return r
}

// run runs the controller for one term, while it is switched on.
func (r *runner) run(ctx context.Context, options Options) {
	for ctx.Err() == nil {
		r.mutex.Lock()
		on, turned := r.on, r.turned
		running, end := context.WithCancel(ctx)
		r.end = end
		r.mutex.Unlock()
		if on {
			r.restart(running, options)
		} else {
			select {
			case <-turned:
			case <-ctx.Done():
			}
		}
		end()
	}
}

// turn switches the controller on or off.
func (r *runner) turn(on bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if on == r.on {
		return
	}
	r.on = on
	close(r.turned)
	r.turned = make(chan struct{})
	if !on && r.end != nil {
		r.end() // also if it is only about to run
	}
	switch {
	case r.status.State == Standby || r.status.State == Disabled:
		r.set(r.idle(), "")
	case !on:
		r.set(Stopping, "")
	}
}

// idle returns the state of a controller that does not run.
func (r *runner) idle() State {
	if r.on {
		return Standby
	}
	return Disabled
}

// restart runs the controller until ctx ends, and restarts it after each failure.
func (r *runner) restart(ctx context.Context, options Options) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", r.controller.Name())
	defer r.stopped()
	backoff := options.Backoff
	for ctx.Err() == nil {
		r.become(ctx, Running, "")
		logger.Info("Starting controller")
		started := time.Now()
		err := r.runOnce(ctx)
		if ctx.Err() != nil {
			if err != nil {
				logger.Error(err, "Controller failed while stopping", stackOf(err)...)
			}
			break
		}
		if err == nil {
			err = errors.New("returned before it was told to stop")
		}
		if time.Since(started) >= recovered {
			backoff = options.Backoff
		}
		delay := backoff.Step()
		r.become(ctx, Degraded, truncate.Error(err))
		logger.Error(err, "Controller failed, restarting it with backoff", append(stackOf(err), "after", delay)...)
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

// stackOf returns the stack of a panic as a key and a value for the log, nil for other
// errors.
func stackOf(err error) []any {
	if panicked, ok := errors.AsType[*reconcile.PanicError](err); ok {
		return []any{"stack", string(panicked.Stack)}
	}
	return nil
}

// become sets a new state, unless the term has ended: then the controller remains Stopping
// until it has stopped.
func (r *runner) become(ctx context.Context, state State, reason string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if ctx.Err() == nil {
		r.set(state, reason)
	}
}

// stopping records the end of the term, unless the controller has stopped.
func (r *runner) stopping() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.status.State != r.idle() {
		r.set(Stopping, "")
	}
}

// stopped records that the controller has stopped.
func (r *runner) stopped() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.set(r.idle(), "")
}

func (r *runner) set(state State, reason string) {
	r.status.State, r.status.Reason, r.status.Since = state, reason, time.Now()
}

// sleep waits for d and returns false if ctx ends first.
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
