// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/flowcontrol"

	"samplecontroller.io/controller-manager/internal/leadership"
	"samplecontroller.io/controller-manager/reconcile"
)

// termLimiter is a rate limiter whose waits end when the work of the term must end. The context
// of a sync does not end then, and a worker that waits would delay the release of the Lease.
type termLimiter struct {
	flowcontrol.RateLimiter
	gate *leadership.Gate
}

// Wait implements flowcontrol.RateLimiter. A request that needs no wait is let through even after
// that, so that a sync can write what it has started.
func (l termLimiter) Wait(ctx context.Context) error {
	if l.TryAccept() {
		return nil
	}
	work := l.gate.Work()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(work, func() { cancel(context.Cause(work)) })()
	err := l.RateLimiter.Wait(ctx)
	if err != nil && work.Err() != nil {
		// The end of the term is logged elsewhere.
		return reconcile.Logged(fmt.Errorf("given up because this process stops leading: %w", context.Cause(work)))
	}
	return err
}
