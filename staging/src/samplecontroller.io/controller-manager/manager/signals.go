// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/internal/logs"
	"samplecontroller.io/controller-manager/internal/options"
)

// servicesTimeout is how long the informers and the server may take to end after the controllers.
const servicesTimeout = 5 * time.Second

// exitAtOnce is how long a process that got a second signal may take to write its log.
const exitAtOnce = 200 * time.Millisecond

// received is why a context ended: the process got a signal.
type received struct{ os.Signal }

// Error implements error.
func (r received) Error() string { return "received signal " + r.String() }

// untilSignal returns a context that ends at the first SIGINT, SIGTERM or SIGHUP. A second
// signal ends the process. A SIGHUP that the process was started to ignore, as by nohup, stays
// ignored.
func untilSignal() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, signals...)
	go func() {
		cancel(received{<-arrived})
		second := <-arrived
		logged := make(chan struct{})
		go func() { // the log may block
			defer close(logged)
			klog.Background().Info("Received a second signal, exiting at once", "signal", second.String())
			logs.Flush()
		}()
		select {
		case <-logged:
		case <-time.After(exitAtOnce):
		}
		os.Exit(1)
	}()
	return ctx
}

// announceEnd returns a context that ends after ctx, once the log says why. Call stop when the
// context is no longer needed.
func announceEnd(ctx context.Context) (announced context.Context, stop func()) {
	logger := klog.FromContext(ctx)
	announced, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-announced.Done(): // stopped
		case <-ctx.Done():
			if why, ok := errors.AsType[received](context.Cause(ctx)); ok {
				logger.Info("Received signal, shutting down", "signal", why.String())
			} else {
				logger.Info("Shutting down")
			}
			cancel()
		}
	}()
	return announced, func() {
		cancel()
		<-ended
	}
}

// startReturningMisuse is like [Program.start], but returns a misuse of the library that it panics with.
func (p Program) startReturningMisuse(ctx context.Context, c *options.Config) (err error) {
	defer returnMisuse(&err)
	return p.start(ctx, c)
}

// startBounded is like [Program.start], but gives up if the process does not end some time after ctx. Some
// requests cannot be canceled: client-go waits for a credential plugin without a limit. The
// process must exit after an error.
func (p Program) startBounded(ctx context.Context, c *options.Config) error {
	ended := make(chan error, 1)
	go func() { ended <- p.startReturningMisuse(ctx, c) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if c.Generic.ControllerShutdownTimeout == 0 {
		return <-ended
	}
	within := c.Generic.ControllerShutdownTimeout + servicesTimeout
	if c.LeaderElection.LeaderElect {
		within += c.LeaderElection.RenewDeadline.Duration // to release the Lease
	}
	if c.Tracing != nil {
		within += spansTimeout
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(within):
		return fmt.Errorf("gave up the orderly end after %v: a request cannot be canceled, for example one that waits for a credential plugin", within)
	}
}
