// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"samplecontroller.io/controller-manager/reconcile"
)

// Source adds a source of keys from outside of the cluster, such as a queue, a timer or the events of
// another system. run is called when the controller starts, in each term, and must return when ctx
// ends. It calls enqueue for each object that is to be reconciled; enqueue may be called concurrently.
// Keys that are enqueued in no term are not kept: at its start, a controller reconciles all objects.
//
// It is not called in a dry run: see [Context.DryRun].
//
// If run returns earlier, or panics, the controller is restarted with backoff.
func (b *Builder[T]) Source(run func(ctx context.Context, enqueue func(cache.ObjectName)) error) {
	b.declares("Source", run != nil)
	b.sources = append(b.sources, run)
}

// built is a finished controller.
type built[T Object] struct {
	*reconcile.Loop
	builder *Builder[T]
	feeding *atomic.Int32 // sources that have not returned
}

// RunningSources returns the number of functions given to Source that have not returned.
func (c *built[T]) RunningSources() int { return int(c.feeding.Load()) }

// Run implements Controller.
func (c *built[T]) Run(ctx context.Context) error {
	c.builder.confirmations.begin()
	c.builder.context.shared.beginNamespaces()
	c.builder.failures.begin()
	defer c.builder.failures.begin() // for explanations
	if c.builder.context.DryRun() {
		return c.Loop.Run(ctx) // without the sources, which may take from other systems
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(c.builder.sources))
	for _, source := range c.builder.sources {
		c.feeding.Add(1)
		go func() {
			defer c.feeding.Add(-1)
			err := c.feed(ctx, source)
			cancel()
			failed <- err
		}()
	}
	err := c.Loop.Run(ctx)
	cancel()
	for range c.builder.sources {
		err = errors.Join(err, <-failed)
	}
	return err
}

// safely calls a function and returns a panic as an error.
func safely(run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &reconcile.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return run()
}

// feed runs a source. It returns an error if the source ends before ctx.
func (c *built[T]) feed(ctx context.Context, source func(context.Context, func(cache.ObjectName)) error) error {
	err := safely(func() error {
		return source(ctx, func(key cache.ObjectName) { c.Enqueue(key, "source") })
	})
	switch {
	case ctx.Err() != nil:
		return nil // errors that its end has caused
	case err == nil:
		return errors.New("a source of keys returned before it was told to stop")
	default:
		return fmt.Errorf("source of keys: %w", err)
	}
}
